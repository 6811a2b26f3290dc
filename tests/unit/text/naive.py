"""A second, naive implementation of the text view, one character at a time.

It knows a subset: printable text of any width, ``\\r \\n \\b \\t``, and within the line
CSI C D G K P @ X. It keeps no bounds. Tests compare the real one with it.
"""

import re
import unicodedata

TOKEN = re.compile("\x1b\\[([0-9]*)([CDGKP@X])|(.)", re.DOTALL)


def width_of(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf") and char >= "\u0300":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Naive:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.cells: list[str] = []
        self.x = 0
        self.pending_return = False

    def feed(self, text: str) -> "Naive":
        for number, final, char in TOKEN.findall(text):
            if char == "\n":
                self.done.append(self.current)
                self.cells, self.x, self.pending_return = [], 0, False
            elif char == "\r":
                self.pending_return = bool(self.cells) or self.x > 0 or self.pending_return
            else:
                if self.pending_return:
                    self.x, self.pending_return = 0, False
                if char:
                    self.put(char)
                else:
                    self.edit(max(1, int(number or 0)), int(number or 0), final)
        return self

    @property
    def current(self) -> str:
        end = len(self.cells)
        while end > self.x and self.cells[end - 1] == " ":
            end -= 1
        return "".join(self.cells[:end])

    @property
    def lines(self) -> list[str]:
        return self.done + ([self.current] if self.current else [])

    def split(self, at: int) -> None:
        if 0 < at < len(self.cells) and self.cells[at] == "":
            begin = at
            while self.cells[begin] == "":
                begin -= 1
            end = at
            while end < len(self.cells) and self.cells[end] == "":
                end += 1
            for i in range(begin, end):
                self.cells[i] = " "

    def pad(self) -> None:
        while len(self.cells) < self.x:
            self.cells.append(" ")

    def put(self, char: str) -> None:
        if char == "\b":
            self.x = max(0, self.x - 1)
            return
        if char == "\t":
            stop = (self.x // 8 + 1) * 8
            if self.x >= len(self.cells):
                self.pad()
                self.cells += ["\t"] + [""] * (stop - self.x - 1)
            self.x = stop
            return
        self.pad()
        width = width_of(char)
        if width == 0:
            at = self.x - 1
            while at > 0 and self.cells[at] == "":
                at -= 1
            if at >= 0:
                self.cells[at] += char
                return
            width = 1
        self.split(self.x)
        self.split(self.x + width)
        self.cells[self.x : self.x + width] = [char, ""][:width]
        self.x += width

    def edit(self, count: int, number: int, final: str) -> None:
        cells, x = self.cells, self.x
        if final == "C":
            self.x = min(x + count, max(len(cells), 2048))
        elif final == "D":
            self.x = max(0, x - count)
        elif final == "G":
            self.x = min(count - 1, max(len(cells), 2048))
        elif final == "K" and number == 0:
            self.split(x)
            del cells[x:]
        elif final == "K" and number == 1:
            self.split(x + 1)
            for i in range(min(x + 1, len(cells))):
                cells[i] = " "
        elif final == "K" and number == 2:
            cells.clear()
        elif final == "P" and x < len(cells):
            self.split(x)
            self.split(x + count)
            del cells[x : x + count]
        elif final == "@" and x < len(cells):
            self.split(x)
            cells[x:x] = [" "] * count
        elif final == "X":
            self.split(x)
            self.split(x + count)
            for i in range(x, min(x + count, len(cells))):
                cells[i] = " "
