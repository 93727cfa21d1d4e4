"""TLS certificates of servers: trusted, not trusted, and unreadable files of trusted authorities."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from pytest_fairness.errors import TargetError
from tests.support.servers import ChatServer
from tests.unit.targets.test_services import ask

AUTHORITY = trustme.CA()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Serve with a certificate of an authority that no system trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    with ChatServer(lambda *_: "hello", tls=context) as found:
        yield found


def test_an_authority_in_ssl_cert_file_is_trusted(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert ask("openai:m", base_url=server.url).text == "hello"


def test_another_authority_ends_the_asking_and_names_the_variable(server: ChatServer) -> None:
    with pytest.raises(TargetError, match=r"certificate of https://127.0.0.1.* is not trusted .*SSL_CERT_FILE"):
        ask("openai:m", base_url=server.url)
    assert server.count == 0


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_unreadable_file_of_certificates_is_named(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(TargetError, match=r"environment variable SSL_CERT_FILE names cannot be read: .*ca\.pem"):
        ask("openai:m", base_url="https://127.0.0.1:9/v1")
