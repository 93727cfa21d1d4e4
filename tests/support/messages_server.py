"""Server of Anthropic's Messages API on the loopback interface."""

from __future__ import annotations

import json

from tests.support.servers import Body, ChatServer, Reply

STOPS = {"stop": "end_turn", "length": "max_tokens"}


class MessagesServer(ChatServer):
    """Server of `POST /v1/messages`; a `finish_reason` may be Anthropic's or OpenAI's."""

    path, key_header = "/v1/messages", "authorization"

    @property
    def url(self) -> str:
        """Return the base URL for Anthropic's client."""
        return f"http://127.0.0.1:{self.port}"

    def answered(self, reply: Reply, body: Body) -> bytes:
        """Return a message."""
        content: list[dict[str, object]] = [
            {"type": "text", "text": part} for part in ([reply.text] if reply.text else [])
        ]
        content += [
            {"type": "tool_use", "id": f"toolu_{place}", "name": name, "input": json.loads(arguments)}
            for place, (name, arguments) in enumerate(reply.calls)
        ]
        prompt_tokens = sum(len(str(message["content"]).split()) for message in body["messages"])
        return json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": reply.model or body["model"],
                "content": content,
                "stop_reason": STOPS.get(reply.finish_reason, reply.finish_reason),
                "stop_sequence": None,
                "usage": {"input_tokens": prompt_tokens, "output_tokens": len(str(reply.text or "").split())},
            }
        ).encode()

    def refused(self, status: int, text: str) -> bytes:
        """Return an error in the API's form."""
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}).encode()
