"""The send machine against what must hold of every send, whatever happens in which order."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.models import model_settings
from workers.send import Ask, Send


class SendLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.send = Send()
        self.asked: list[Ask] = []
        self.writing = False
        self.interrupting = False
        self.cancelled = False
        self.write_failed = False
        self.settled_by_then = False

    def take(self, asks: list[Ask]) -> None:
        for ask in asks:
            before = list(self.asked)
            self.asked.append(ask)
            if ask is Ask.WRITE:
                assert Ask.WRITE not in before
                assert not self.cancelled, "a send cancelled before its first byte writes nothing"
                self.writing = True
            elif ask is Ask.INTERRUPT:
                assert self.cancelled
                assert Ask.INTERRUPT not in before
                assert Ask.WRITE in before, "there must be something of this send to interrupt"
                assert not self.writing, "the rest of the text would be typed after it"
                assert not self.write_failed
                assert Ask.RELEASE not in before, "the terminal may be a successor's by now"
                self.interrupting = True
            elif ask in (Ask.SETTLE, Ask.FAIL):
                assert not ({Ask.SETTLE, Ask.FAIL} & set(before)), "a result never changes"
            elif ask is Ask.RELEASE:
                assert Ask.RELEASE not in before
                assert {Ask.SETTLE, Ask.FAIL} & set(before)
                assert not self.writing
                assert not self.interrupting

    @rule()
    def begin(self) -> None:
        self.take(self.send.begin())

    @precondition(lambda self: self.writing)
    @rule(ok=st.booleans())
    def write_ends(self, ok: bool) -> None:
        self.writing = False
        self.write_failed = not ok
        self.take(self.send.written() if ok else self.send.write_failed())

    @rule()
    def cancel(self) -> None:
        self.cancelled = self.cancelled or not self.send.is_settled
        self.take(self.send.cancel())

    @precondition(lambda self: self.interrupting)
    @rule()
    def interrupt_lands(self) -> None:
        self.interrupting = False
        self.take(self.send.interrupted())

    @precondition(lambda self: Ask.WRITE in self.asked)
    @rule()
    def wants_input(self) -> None:
        asks = self.send.verdict(waits_for_input=True)
        assert not (asks and self.writing), "what has not been written cannot have been read"
        self.take(asks)

    @precondition(lambda self: Ask.WRITE in self.asked)
    @rule()
    def ends_by_deadline_or_exit(self) -> None:
        was = self.send.is_settled
        asks = self.send.verdict(waits_for_input=False)
        assert was or Ask.SETTLE in asks, "nothing can hold a deadline or an exit back"
        self.take(asks)

    @invariant()
    def a_settled_send_that_is_at_rest_has_freed_the_slot(self) -> None:
        at_rest = self.send.is_settled and not self.writing and not self.interrupting
        assert (Ask.RELEASE in self.asked) == at_rest

    def teardown(self) -> None:
        """Let everything under way land: the slot must come free."""
        self.take(self.send.begin())
        if self.writing:
            self.writing = False
            self.take(self.send.written())
        if self.interrupting:
            self.interrupting = False
            self.take(self.send.interrupted())
        self.take(self.send.verdict(waits_for_input=False))
        assert Ask.RELEASE in self.asked


TestSendLife = SendLife.TestCase
TestSendLife.settings = model_settings()
