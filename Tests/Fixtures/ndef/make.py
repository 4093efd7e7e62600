#!/usr/bin/env python3
"""Makes ndeflib.json, what ndeflib 0.3.3 makes of records: `python3 make.py > ndeflib.json`."""
import json

import ndef

TEXTS = ["", "left", "{\"uuid\":\"5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90\",\"stepId\":\"left\"}", "Trittstufe öffnen 🚃", "x" * 300]
URIS = ["", "http://www.n.com", "https://example.org/a?b=c", "tel:112", "urn:nfc:x", "urn:epc:id:1", "ftp://ftp.a.b",
        "geo:48.7,9.1", "https://www.straße.de/"]
OTHERS = [("text/plain", "", b"a"), ("application/vnd.wfa.wsc", "0", b"\x10\x0e"), ("urn:nfc:ext:android.com:pkg", "", b"a.b"),
          ("unknown", "i", b"\0" * 256), ("", "", b""), ("http://a.b/c", "", b"")]


def entry(kind, records, **fields):
    return {"kind": kind, "bytes": b"".join(ndef.message_encoder(records)).hex(), **fields}


entries = [entry("text", [ndef.TextRecord(text, language, encoding)], text=text, language=language, encoding=encoding)
           for text in TEXTS for language, encoding in [("en", "UTF-8"), ("de-DE", "UTF-8"), ("en", "UTF-16")]]
entries += [entry("uri", [ndef.UriRecord(uri)], uri=uri) for uri in URIS]
entries += [entry("record", [ndef.Record(kind, name, data)], type=kind, id=name, payload=data.hex())
            for kind, name, data in OTHERS]
entries.append(entry("several", [ndef.UriRecord("tel:1"), ndef.TextRecord("a", "en"), ndef.Record("unknown", "", b"z")]))
print(json.dumps(entries, indent=1))
