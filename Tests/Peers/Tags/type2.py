"""NFC Forum Type 2 tags: NTAG213/215/216 (NTAG213_215_216, Rev. 3.2), NTAG203, MIFARE Ultralight (MF0ICU1), MIFARE
Ultralight EV1 (MF0ULx1) without its counters, and MIFARE Ultralight C (MF0ICU2), to which nobody can say its key."""

from dataclasses import dataclass

from iso14443a import Answer, Tag

ACK, NAK, NAK_CHECKSUM = 0xA, 0x0, 0x1

READ, FAST_READ, WRITE, COMPATIBILITY_WRITE = 0x30, 0x3A, 0xA2, 0xA0
GET_VERSION, READ_SIG, PWD_AUTH = 0x60, 0x3C, 0x1B


@dataclass(frozen=True)
class Model:
    pages: int
    container: bytes = bytes(4)  # page 3, as it leaves the factory
    content: bytes = bytes(4)  # from page 4 on, as it leaves the factory
    version: bytes | None = None  # without it there is neither GET_VERSION nor any other of NTAG21x's commands
    lock_page: int | None = None  # of the dynamic lock bytes
    refusal: int | None = NAK  # how it answers commands that it does not have
    key_pages: range = range(0)  # of Ultralight C's key; AUTH0 and AUTH1 are in the two pages before
    has_fast_read: bool = True  # some say another chip's version and do not have all of its commands
    # Of the dynamic lock bytes: the pages that a lock bit covers, and the bits that a block-locking bit freezes.
    locks: tuple[tuple[int, range], ...] = ()
    blocks: tuple[tuple[int, int], ...] = ()

    @property
    def configuration(self) -> int | None:
        """The first configuration page, CFG0; PWD and PACK are the third and the fourth."""
        return self.pages - 4 if self.version else None


def even_locks(first: int, last: int, step: int, pairs: int) -> dict:
    """NTAG21x's layout: bit n for `step` pages, and from bit 16 on a block-locking bit for every two of them."""
    starts = range(first, last + 1, step)
    return {
        "locks": tuple((n, range(start, min(start + step, last + 1))) for n, start in enumerate(starts)),
        "blocks": tuple((16 + n, 0b11 << 2 * n) for n in range(pairs)),
    }


MODELS = {
    "ntag213": Model(
        45, bytes.fromhex("e1101200"), bytes.fromhex("0103a00c340300fe"), bytes.fromhex("0004040201000f03"), 0x28,
        **even_locks(16, 39, 2, 6),
    ),
    "ntag215": Model(
        135, bytes.fromhex("e1103e00"), bytes.fromhex("0300fe00"), bytes.fromhex("0004040201001103"), 0x82,
        **even_locks(16, 129, 16, 4),
    ),
    "ntag216": Model(
        231, bytes.fromhex("e1106d00"), bytes.fromhex("0300fe00"), bytes.fromhex("0004040201001303"), 0xE2,
        **even_locks(16, 225, 16, 7),
    ),
    "ntag203": Model(
        42, bytes.fromhex("e1101200"), bytes.fromhex("0103a010440300fe"), None, 0x28,
        locks=(
            (1, range(16, 20)), (2, range(20, 24)), (3, range(24, 28)),
            (5, range(28, 32)), (6, range(32, 36)), (7, range(36, 40)), (12, range(41, 42)),
        ),
        blocks=((0, 0b1110), (4, 0b1110_0000), (8, 1 << 12)),
    ),
    "ultralight-c": Model(
        48, bytes.fromhex("e1101200"), bytes.fromhex("0103a010440300fe"), None, 0x28, key_pages=range(44, 48),
        locks=(
            (1, range(16, 20)), (2, range(20, 24)), (3, range(24, 28)),
            (5, range(28, 32)), (6, range(32, 36)), (7, range(36, 40)),
            (12, range(41, 42)), (13, range(42, 43)), (14, range(43, 44)), (15, range(44, 48)),
        ),
        blocks=((0, 0b1110), (4, 0b1110_0000), (8, 1 << 12), (9, 1 << 13), (10, 1 << 14), (11, 1 << 15)),
    ),
    "ultralight": Model(16, refusal=None),
    "ultralight-ev1-48": Model(20, version=bytes.fromhex("0004030101000b03")),
    "ultralight-ev1-128": Model(
        41, version=bytes.fromhex("0004030101000e03"), lock_page=0x24, **even_locks(16, 35, 2, 5)
    ),
}  # fmt: skip


class Type2(Tag):
    """`memory` is all of it, password and PACK too, whatever READ shows of them."""

    def __init__(self, model: str | Model = "ntag213", uid: bytes | None = None, image: bytes | None = None):
        self.model = MODELS[model] if isinstance(model, str) else model
        self.memory = self._factory()
        if image is not None:
            if len(image) > len(self.memory):
                raise ValueError(f"{len(image)} bytes do not fit on {len(self.memory)}")
            self.memory[: len(image)] = image
            uid = uid or bytes(image[:3] + image[4:8])
        self.deaf: set[int] = set()  # pages that acknowledge what is written to them, and stay as they are
        uid = uid or bytes.fromhex("04a1b2c3d4e580")
        if len(uid) == 4:  # of copies
            self.memory[:5] = uid + bytes([uid[0] ^ uid[1] ^ uid[2] ^ uid[3]])
        elif len(uid) == 7:
            first, second = 0x88 ^ uid[0] ^ uid[1] ^ uid[2], uid[3] ^ uid[4] ^ uid[5] ^ uid[6]
            self.memory[:9] = uid[:3] + bytes([first]) + uid[3:] + bytes([second])
        else:
            raise ValueError("a Type 2 tag's UID has 4 or 7 bytes")
        self.readings = 0  # what the counter counts
        super().__init__(uid)

    @classmethod
    def of_size(cls, image: bytes, uid: bytes | None = None) -> "Type2":
        """A tag as large as its dump, with static lock bytes and READ and WRITE alone."""
        return cls(Model(len(image) // 4), uid, image)

    def another(self, uid: bytes) -> "Type2":
        """One of the same model, as it left the factory."""
        return Type2(self.model, uid)

    def _factory(self) -> bytearray:
        memory = bytearray(self.model.pages * 4)
        memory[9] = 0x48
        memory[12 : 16 + len(self.model.content)] = self.model.container + self.model.content
        if self.model.configuration:
            # Mirror off, AUTH0 beyond the end, no limit; the password is all ones.
            memory[self.model.configuration * 4 :] = bytes.fromhex("040000ff 00050000 ffffffff 00000000")
            if self.model.lock_page is not None:
                memory[self.model.lock_page * 4 + 3] = 0xBD
        if self.model.key_pages:
            memory[self.model.key_pages.start * 4 - 8] = self.model.pages  # AUTH0: no page needs the key
        return memory

    def content(self) -> bytes:
        return bytes(self.memory)

    def page(self, number: int) -> bytes:
        return bytes(self.memory[number * 4 : number * 4 + 4])

    def reset(self):
        self._authenticated = False
        self._expects = None  # the page of a COMPATIBILITY_WRITE whose data come next
        # Locks and configuration that were written count from the next selection on.
        self._locked = self._pages_locked()
        at = (self.model.configuration or 0) * 4
        self._first_protected = self.memory[at + 3] if at else self.model.pages  # AUTH0
        self._access = self.memory[at + 4] if at else 0
        if keys := self.model.key_pages:
            self._first_protected = self.memory[keys.start * 4 - 8]
            self._access = 0 if self.memory[keys.start * 4 - 4] & 1 else 0x80
        self._is_counted = False

    def _pages_locked(self) -> set[int]:
        static = int.from_bytes(self.memory[10:12], "little")
        locked = {page for page in range(3, 16) if static >> page & 1}
        if self.model.lock_page is not None:
            dynamic = int.from_bytes(self.page(self.model.lock_page)[:3], "little")
            for bit, pages in self.model.locks:
                if dynamic >> bit & 1:
                    locked.update(pages)
        return locked

    def kind(self, data: bytes) -> str:
        if self._expects is not None:
            return "write"
        return {READ: "read", FAST_READ: "read", WRITE: "write"}.get(data[0], "other")

    def command(self, data: bytes) -> Answer:
        answer = self._answer(data)
        if answer in (NAK, None):
            self.drop()
        return answer

    def bad_frame(self) -> Answer:
        self.drop()
        return NAK_CHECKSUM

    def _answer(self, data: bytes) -> Answer:
        code, parameters, last = data[0], data[1:], self.model.pages - 1
        if self._expects is not None:
            page, self._expects = self._expects, None
            return self._write(page, data[:4]) if len(data) == 16 else NAK
        if code in (READ, FAST_READ) and self._access & 0x10 and not self._is_counted:
            self._is_counted = True
            self.readings += 1
        if code == READ and len(parameters) == 1 and self._readable(parameters[0]):
            return b"".join(self._shown(page) for page in self._from(parameters[0], 4))
        if code == WRITE and len(parameters) == 5:
            return self._write(parameters[0], parameters[1:])
        if code == COMPATIBILITY_WRITE and len(parameters) == 1:
            self._expects = parameters[0]
            return ACK
        if self.model.version is None:
            return self.model.refusal
        if code == GET_VERSION and not parameters:
            return self.model.version
        if code == FAST_READ and len(parameters) == 2 and parameters[0] <= parameters[1] <= last:
            pages = range(parameters[0], parameters[1] + 1)
            if self.model.has_fast_read and all(self._readable(page) for page in pages):
                return b"".join(self._shown(page) for page in pages)
        if code == READ_SIG and parameters == b"\x00":
            return bytes(range(32))  # none of NXP's: only its length is true
        if code == PWD_AUTH and len(parameters) == 4 and parameters == self._password():
            self._authenticated = True
            return self.page(self.model.configuration + 3)[:2]
        return NAK

    def _password(self) -> bytes:
        return self.page(self.model.configuration + 2)

    def _protected(self, page: int) -> bool:
        return page >= self._first_protected and not self._authenticated

    def _readable(self, page: int) -> bool:
        hidden = page in self.model.key_pages or self._access & 0x80 and self._protected(page)
        return page < self.model.pages and not hidden

    def _from(self, first: int, pages: int) -> list[int]:
        """READ goes on at page 0 where the memory, or what may be read of it, ends."""
        found, page = [], first
        for _ in range(pages):
            page = page if self._readable(page) else 0
            found.append(page)
            page += 1
        return found

    def _shown(self, page: int) -> bytes:
        secret = self.model.configuration is not None and page >= self.model.configuration + 2
        return bytes(4) if secret else bytes(self._mirrored()[page * 4 : page * 4 + 4])

    def _mirrored(self) -> bytearray:
        """The memory, with the UID, the counter or both as ASCII in place of what is there (8.7)."""
        shown, at = bytearray(self.memory), (self.model.configuration or 0) * 4
        mirror, first = self.memory[at], self.memory[at + 2]
        uid, counter = self.uid.hex().upper().encode(), b"%06X" % self.readings
        text = (b"", uid, counter, uid + b"x" + counter)[mirror >> 6 if at and first > 3 else 0]
        start = first * 4 + (mirror >> 4 & 3)
        shown[start : start + len(text)] = text
        return shown

    def mirror(self, what: int, address: int):
        """1: the UID, 2: the counter, 3: both. The counter is switched on."""
        at = self.model.configuration * 4
        self.memory[at], self.memory[at + 2] = what << 6 | address % 4 << 4, address // 4
        self.memory[at + 4] |= 0x10
        self.reset()

    def _write(self, page: int, new: bytes) -> int:
        if not 2 <= page < self.model.pages or page in self._locked or self._protected(page):
            return NAK
        configuration = self.model.configuration
        if configuration and page in (configuration, configuration + 1) and self._access & 0x40:
            return NAK  # CFGLCK
        if page not in self.deaf:
            self._store(page, new)
        return ACK

    def protect(self, first: int, reading: bool = False):
        """AUTH0, and PROT of ACCESS; or AUTH0 and AUTH1."""
        if keys := self.model.key_pages:
            self.memory[keys.start * 4 - 8], self.memory[keys.start * 4 - 4] = first, 0 if reading else 1
        else:
            at = self.model.configuration * 4
            self.memory[at + 3], self.memory[at + 4] = first, 0x80 if reading else 0
        self.reset()

    def _store(self, page: int, new: bytes):
        old = self.page(page)
        if page == 2:
            # The first bits of the lock bytes freeze others: CC, 4 to 9, 10 to 15.
            frozen = sum(mask for bit, mask in ((0, 1 << 3), (1, 0x3F << 4), (2, 0x3F << 10)) if old[2] >> bit & 1)
            new = old[:2] + self._locks(old[2:], new[2:], frozen)
        elif page == 3:
            new = bytes(a | b for a, b in zip(old, new))
        elif page == self.model.lock_page:
            value = int.from_bytes(old[:3], "little")
            frozen = sum(mask for bit, mask in self.model.blocks if value >> bit & 1)
            new = self._locks(old[:3], new[:3], frozen) + old[3:]
        self.memory[page * 4 : page * 4 + 4] = new

    def _locks(self, old: bytes, new: bytes, frozen: int) -> bytes:
        """Bits that are set stay set, and those that are frozen stay as they are."""
        before, wanted = int.from_bytes(old, "little"), int.from_bytes(new, "little")
        return (before | wanted & ~frozen).to_bytes(len(old), "little")

    def tear(self, data: bytes, how: str):
        page, new = (data[1], data[2:]) if self._expects is None else (self._expects, data[:4])
        old = self.page(page)
        torn = {
            "old": old,
            "new": new,
            "half": new[:2] + old[2:],
            "garbage": bytes(a ^ b ^ 0xA5 for a, b in zip(old, new)),
        }[how]
        if self._write(page, torn) == NAK:
            self.drop()
