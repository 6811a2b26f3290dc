"""What every actor of one fabric is made from."""

from dataclasses import dataclass, replace

from fabric.core.settings import Settings, WorkerSettings


@dataclass(frozen=True, slots=True)
class Plan:
    """What every actor of one fabric is made from; ``state_dir`` is the same on every node."""

    settings: Settings
    state_dir: str

    @property
    def namespace(self) -> str:
        """The Ray namespace of the fabric."""
        return self.settings.cluster.namespace

    @property
    def worker(self) -> WorkerSettings:
        """The settings of a session worker; the state folder is masked in confined sessions."""
        worker = self.settings.worker
        masked = (*worker.sandbox.masked_paths, self.state_dir)
        return replace(worker, sandbox=replace(worker.sandbox, masked_paths=masked))
