"""The application: a page, a WebSocket for pictures, a way in for files and a way out for exports."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import struct
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse, JSONResponse
from nicegui import ui
from starlette.requests import ClientDisconnect

from ..errors import UndulaError
from .guard import visitor_of
from .page import Page
from .server import Options
from .session import Session
from .shelf import Shelf
from .uploads import TooLongError, arriving

__all__ = ["application"]

STATIC = Path(__file__).parent / "static"


def application(options: Options, shelf: Shelf) -> Any:
    """The application, without its guard."""

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        tidying = asyncio.create_task(_tidying(shelf))
        yield
        tidying.cancel()
        shelf.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    async def pictures(websocket: WebSocket, key: str) -> None:
        session = shelf.by_key(visitor_of(websocket.scope), key)
        if session is None:
            await websocket.close(4404)
            return
        await websocket.accept()
        send = websocket.send_bytes
        session.attach(send)
        try:
            while True:
                _heard(session, await websocket.receive())
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            session.detach(send)

    app.add_api_websocket_route("/studio/pictures/{key}", pictures)

    async def upload(request: Request, key: str, name: str = "file") -> JSONResponse:
        session = shelf.by_key(visitor_of(request.scope), key)
        if session is None:
            return JSONResponse({"error": "this page is no longer known; load it again"}, 404)
        path = session.folder / f"{secrets.token_hex(8)}{_suffix(name)}"
        length = int(request.headers.get("content-length") or 0)
        try:
            with session.place(), arriving(shelf.room, path) as arrival:
                await arrival.receive(request.stream(), length)
                await session.opened(path, name[-120:])
                arrival.keep()
        except ClientDisconnect:
            return JSONResponse({"error": "the upload was aborted"}, 400)
        except (UndulaError, OSError) as error:
            long = isinstance(error, TooLongError)
            return JSONResponse({"error": " ".join(str(error).split())}, 413 if long else 422)
        session.told()
        return JSONResponse({"name": name})

    app.add_api_route("/studio/upload/{key}", upload, methods=["POST"], response_model=None)

    async def exported(request: Request, key: str, number: int) -> Any:
        session = shelf.by_key(visitor_of(request.scope), key)
        path = session.exported.get(number) if session is not None else None
        if path is None or not path.is_file():
            return JSONResponse({"error": "there is no such export"}, 404)
        return FileResponse(path, filename=path.name)

    app.add_api_route("/studio/export/{key}/{number}", exported, methods=["GET"], response_model=None)

    async def state(request: Request, key: str) -> JSONResponse:
        session = shelf.by_key(visitor_of(request.scope), key)
        if session is None:
            return JSONResponse({"error": "this page is no longer known; load it again"}, 404)
        return JSONResponse({"version": session.version, "playing": session.playing.on})

    app.add_api_route("/studio/state/{key}", state, methods=["GET"], response_model=None)

    @ui.page("/", title="Undula Studio", favicon=STATIC / "favicon.svg", dark=None, response_timeout=20)
    async def page(request: Request) -> None:
        client = ui.context.client
        await client.connected(timeout=20)
        try:
            session, new = shelf.session(visitor_of(request.scope), client.tab_id or client.id)
        except UndulaError as error:
            ui.label(str(error)).classes("text-h6 q-pa-lg")
            return
        own = Page(session, options, await asyncio.wrap_future(shelf.devices))
        own.build()
        client.on_delete(lambda: shelf.leave(session, own))
        session.page = own
        if new:
            await own.open_files(options.files)

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


async def _tidying(shelf: Shelf) -> None:
    while True:
        await asyncio.sleep(30)
        shelf.tidy()


def _suffix(name: str) -> str:
    """The suffix of a name that somebody sent, if it is a plain one."""
    found = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
    return found[0].lower() if found else ""


def _heard(session: Session, message: Any) -> None:
    """What a page says: that it has drawn something, or what its camera sees."""
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    with suppress(ValueError, KeyError, TypeError, struct.error, UndulaError):
        if message.get("text"):
            told = json.loads(message["text"])
            if "ack" in told:
                session.acknowledged(int(told["ack"]))
            if "scale" in told:
                session.zoomed(float(told["scale"]))
        elif message.get("bytes"):
            data = message["bytes"]
            (length,) = struct.unpack_from("<I", data)
            head = json.loads(data[4 : 4 + min(length, 1000)])
            session.saw(data[4 + length :], int(head["width"]), int(head["height"]))
