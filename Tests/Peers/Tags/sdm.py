"""Secure dynamic messages of an NTAG 424 DNA (NT4H2421Gx, 9.3 and 10.7.1)."""

from dataclasses import dataclass

from aes import cbc, cmac, short_mac
from native import FREE, LENGTH_ERROR, NEVER, PARAMETER_ERROR, Refused, little, number

NOT_MIRRORED = 0xFFFFFF  # as the counter's offset: it counts all the same


def sdm_keys(key: bytes, uid: bytes, counter: bytes) -> tuple[bytes, bytes]:
    """The same of a secure dynamic message (9.3.9.1); what is not mirrored is empty."""
    context = (b"\x00\x01\x00\x80" + uid + counter).ljust(14, b"\0")
    return cmac(key, b"\xc3\x3c" + context), cmac(key, b"\x3c\xc3" + context)


@dataclass(frozen=True)
class Mirror:
    """Settings of secure dynamic messages (10.7.1); offsets that the options leave out are None."""

    options: int  # UID 0x80, SDMReadCtr 0x40, its limit 0x20, SDMENCFileData 0x10, ASCII 0x01
    meta_read: int
    file_read: int
    counter_read: int
    uid_at: int | None = None
    counter_at: int | None = None
    picc_data_at: int | None = None
    mac_input_at: int | None = None
    encrypted_at: int | None = None
    encrypted_length: int | None = None
    mac_at: int | None = None
    limit: int | None = None

    @staticmethod
    def fields(options: int, meta_read: int, file_read: int) -> list[str]:
        """The numbers of three bytes that follow, by the options."""
        found = []
        if options & 0x80 and meta_read == FREE:
            found.append("uid_at")
        if options & 0x40 and meta_read == FREE:
            found.append("counter_at")
        if meta_read <= 4:
            found.append("picc_data_at")
        if file_read != NEVER:
            found.append("mac_input_at")
            if options & 0x10:
                found += ["encrypted_at", "encrypted_length"]
            found.append("mac_at")
        if options & 0x20:
            found.append("limit")
        return found

    @classmethod
    def parse(cls, data: bytes, size: int) -> "Mirror":
        if len(data) < 3:
            raise Refused(LENGTH_ERROR)
        options, rights = data[0], number(data[1:3])
        meta_read, file_read, counter_read = rights >> 12, rights >> 8 & 0xF, rights & 0xF
        names = cls.fields(options, meta_read, file_read)
        if len(data) != 3 + 3 * len(names):
            raise Refused(LENGTH_ERROR)
        values = {name: number(data[3 + 3 * n : 6 + 3 * n]) for n, name in enumerate(names)}
        mirror = cls(options, meta_read, file_read, counter_read, **values)
        mirror._check(size)
        return mirror

    def _check(self, size: int):
        areas = [(at, length) for at, length in self._areas() if at is not None]
        apart = all(a + m <= b or b + n <= a for i, (a, m) in enumerate(areas) for b, n in areas[:i])
        right = apart and all(at + length <= size for at, length in areas) and self.options & 0x0E == 0
        if self.mac_at is not None:
            right = right and self.mac_input_at <= self.mac_at
        if self.encrypted_at is not None:
            right = right and self.encrypted_length and self.encrypted_length % 32 == 0
            right = right and self.mac_input_at <= self.encrypted_at < self.mac_at
        if self.options & 0x10:  # both are part of its key
            right = right and self.options & 0xC0 == 0xC0
        if self.options & 0x01 == 0 or self.file_read == FREE or not right:
            raise Refused(PARAMETER_ERROR)

    def _areas(self) -> tuple:
        return (
            (self.uid_at, 14),
            (None if self.counter_at == NOT_MIRRORED else self.counter_at, 6),
            (self.picc_data_at, 32),
            (self.encrypted_at, self.encrypted_length),
            (self.mac_at, 16),
        )

    def encode(self) -> bytes:
        rights = self.meta_read << 12 | self.file_read << 8 | 0xF0 | self.counter_read
        names = self.fields(self.options, self.meta_read, self.file_read)
        numbers = b"".join(little(getattr(self, name), 3) for name in names)
        return bytes([self.options]) + little(rights, 2) + numbers

    def shown(self, data: bytes, tag_uid: bytes, read_counter: int, keys: list[bytes], random) -> bytes:
        """The file's data with everything mirrored."""
        message = bytearray(data)

        def put(at: int | None, mirrored: bytes):
            if at is not None:
                message[at : at + 2 * len(mirrored)] = mirrored.hex().upper().encode()

        counter = little(read_counter, 3)
        put(self.uid_at, tag_uid)
        if self.counter_at != NOT_MIRRORED:
            put(self.counter_at, counter[::-1])
        # Without a mirror of its own a part of PICCData is left out of everything.
        uid = tag_uid if self.options & 0x80 else b""
        counter = counter if self.options & 0x40 else b""
        if self.picc_data_at is not None:
            plain = bytes([self.options & 0xC0 | len(uid)]) + uid + counter
            plain += random(16 - len(plain))
            put(self.picc_data_at, cbc(keys[self.meta_read], plain))
        if self.mac_at is not None:
            encryption, mac = sdm_keys(keys[self.file_read], uid, counter)
            if self.encrypted_at is not None:
                at = self.encrypted_at
                iv = cbc(encryption, counter.ljust(16, b"\0"))
                put(at, cbc(encryption, bytes(data[at : at + self.encrypted_length // 2]), iv))
            put(self.mac_at, short_mac(mac, bytes(message[self.mac_input_at : self.mac_at])))
        return bytes(message)
