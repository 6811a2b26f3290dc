"""What every actor of one fabric is made from."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from fabric.actors.names import short_folder
from fabric.core.settings import Settings, WorkerSettings

CLIENT_SECRETS = ("FABRIC_TOKEN_FILE", "FABRIC_KEY_FILE")


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
        """The settings of a session worker; what is the service's own is masked in sessions.

        The state folder, the folder for sockets where that is too long, and the gateway's
        credentials wherever they lie.
        """
        worker, gateway = self.settings.worker, self.settings.gateway
        files = (
            gateway.token_file,
            gateway.signing_key_file,
            gateway.revoked_file,
            gateway.tls_key_file,
            worker.transcript.dir,
            *(os.environ.get(name, "") for name in CLIENT_SECRETS),
        )
        masked = (
            *worker.sandbox.masked_paths,
            str(Path(self.state_dir).expanduser().absolute()),
            str(short_folder()),
            *(str(Path(path).expanduser().absolute()) for path in files if path),
        )
        return replace(worker, sandbox=replace(worker.sandbox, masked_paths=masked))
