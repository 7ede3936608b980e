"""The web application: the page, a WebSocket for pictures, uploads and downloads."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import struct
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, JSONResponse, Response
from nicegui import ui
from starlette.requests import ClientDisconnect

from .. import io
from ..errors import UndulaError
from .guard import visitor_of
from .inputs import sample_thumbnail
from .page import Page
from .server import ServerOptions
from .session import Session
from .session_registry import SessionRegistry
from .uploads import UploadTooLargeError, receiving

__all__ = ["application"]

STATIC = Path(__file__).parent / "static"


def application(options: ServerOptions, sessions: SessionRegistry) -> Any:
    """Return the ASGI application, without access control."""

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        cleaning = asyncio.create_task(_clean_up(sessions))
        yield
        cleaning.cancel()
        sessions.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    async def pictures(websocket: WebSocket, key: str) -> None:
        session = sessions.by_key(visitor_of(websocket.scope), key)
        if session is None:
            await websocket.close(4404)
            return
        await websocket.accept()
        send = websocket.send_bytes
        session.attach(send)
        try:
            while True:
                await _handle_message(session, await websocket.receive())
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            session.detach(send)

    app.add_api_websocket_route("/studio/pictures/{key}", pictures)

    async def receive_upload(
        request: Request, key: str, name: str = "file", batch: bool = False
    ) -> JSONResponse:
        session = sessions.by_key(visitor_of(request.scope), key)
        if session is None:
            return JSONResponse({"error": "this session has expired; reload the page"}, 404)
        path = session.folder / f"{secrets.token_hex(8)}{_suffix(name)}"
        length = int(request.headers.get("content-length") or 0)
        try:
            with (
                nullcontext() if batch else session.reserve_slot(),
                receiving(sessions.budget, path) as upload,
            ):
                await upload.receive(request.stream(), length)
                if batch:
                    await session.exports.start_upload(path, name[-120:], options.exports)
                else:
                    await session.open_in_slot(path, name[-120:])
                upload.keep()
        except ClientDisconnect:
            return JSONResponse({"error": "the upload was aborted"}, 400)
        except asyncio.CancelledError:  # The server waits for requests a short time only.
            return JSONResponse({"error": "the Studio was stopped"}, 503)
        except (UndulaError, OSError) as error:
            status = 413 if isinstance(error, UploadTooLargeError) else 422
            return JSONResponse({"error": " ".join(str(error).split())}, status)
        session.notify_page()
        return JSONResponse({"name": name})

    app.add_api_route("/studio/upload/{key}", receive_upload, methods=["POST"], response_model=None)

    async def download_export(request: Request, key: str, number: int) -> Any:
        session = sessions.by_key(visitor_of(request.scope), key)
        export = session.exports.find(number) if session is not None else None
        path = export.path if export is not None else None
        if path is None or not path.is_file():
            return JSONResponse({"error": "no such export"}, 404)
        return FileResponse(path, filename=path.name)

    app.add_api_route("/studio/export/{key}/{number}", download_export, methods=["GET"], response_model=None)

    @cache
    def thumbnail(name: str) -> bytes:
        return sample_thumbnail(io.sample(name, sessions.budget.folder / "samples"))

    async def show_sample(name: str) -> Response:
        if name not in io.samples():
            return JSONResponse({"error": "no such sample"}, 404)
        data = await asyncio.to_thread(thumbnail, name)
        return Response(data, media_type="image/jpeg", headers={"cache-control": "private, max-age=3600"})

    app.add_api_route("/studio/sample/{name}", show_sample, methods=["GET"], response_model=None)

    async def state(request: Request, key: str) -> JSONResponse:
        session = sessions.by_key(visitor_of(request.scope), key)
        if session is None:
            return JSONResponse({"error": "this session has expired; reload the page"}, 404)
        return JSONResponse(
            {"version": session.version, "playing": session.playback.on, "mark": session.sync_mark}
        )

    app.add_api_route("/studio/state/{key}", state, methods=["GET"], response_model=None)

    @ui.page("/", title="Undula Studio", favicon=STATIC / "favicon.svg", dark=None, response_timeout=20)
    async def page(request: Request) -> None:
        client = ui.context.client
        await client.connected(timeout=20)
        try:
            session, new = sessions.session(visitor_of(request.scope), client.tab_id or client.id)
        except UndulaError as error:
            ui.label(str(error)).classes("text-h6 q-pa-lg")
            return
        studio_page = Page(session, options, *await asyncio.wrap_future(sessions.devices))
        studio_page.build()
        client.on_delete(lambda: sessions.leave(session, studio_page))
        session.page = studio_page
        if new:
            await studio_page.open_files(options.files)

    ui.menu_item.default_props("role=menuitem")  # Quasar calls them items of a list.
    ui.run_with(
        app,
        title="Undula Studio",
        reconnect_timeout=10,
        message_history_length=200,
        show_welcome_message=False,
        binding_refresh_interval=None,
        tailwind=False,
    )
    return app


async def _clean_up(sessions: SessionRegistry) -> None:
    while True:
        await asyncio.sleep(30)
        sessions.remove_abandoned()


def _suffix(name: str) -> str:
    """Return the suffix of a file name sent by a visitor, if it is a plain one."""
    match = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
    return match[0].lower() if match else ""


async def _handle_message(session: Session, message: Any) -> None:
    """Handle a message of the page: a picture was drawn, a value is asked for, and others."""
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    with suppress(ValueError, KeyError, TypeError, struct.error, UndulaError):
        if message.get("text"):
            content = json.loads(message["text"])
            if "ack" in content:
                session.acknowledge(int(content["ack"]))
            if "scale" in content:
                session.set_scale(float(content["scale"]))
            if "window" in content and session.current is not None:
                session.current.shift_window(*(min(10.0, max(-10.0, float(n))) for n in content["window"]))
                session.invalidate()
            if "probe" in content or "region" in content:
                await session.describe(content)
        elif message.get("bytes"):
            data = message["bytes"]
            (length,) = struct.unpack_from("<I", data)
            head = json.loads(data[4 : 4 + min(length, 1000)])
            session.add_camera_frame(data[4 + length :], int(head["width"]), int(head["height"]))
