"""Certificates that no command of ours makes."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

P_256 = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def self_signed(folder: Path, name: str, *extra: str) -> tuple[Path, Path]:
    """One that vouches for itself, and its key, by openssl: for the host of that name, or as `extra` says."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    extra = extra or ("-addext", f"subjectAltName=DNS:{name}")
    subprocess.run(
        ["openssl", "req", "-x509", *P_256, "-days", "2", "-subj", f"/CN={name}", *extra, "-keyout", key,
         "-out", certificate],
        check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


def reissue(vehicle: Path, file: Path, days: tuple[float, float], *names: x509.GeneralName):
    """Replaces a certificate by another of the vehicle's own authority for the same key: valid from and to so many days
    from now, and for these names in place of what the old one has besides."""
    authority = x509.load_pem_x509_certificate((vehicle / "tls/ca.pem").read_bytes())
    signer = serialization.load_pem_private_key((vehicle / "operator/ca.key").read_bytes(), None)
    old, now = x509.load_pem_x509_certificate(file.read_bytes()), datetime.now(UTC)
    new = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(authority.subject)
        .public_key(old.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )
    if names:
        new = new.add_extension(x509.SubjectAlternativeName(names), critical=False)
    else:
        for extension in old.extensions:
            new = new.add_extension(extension.value, extension.critical)
    file.write_bytes(new.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
