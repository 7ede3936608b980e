"""Convert audio and text subtitles that a container cannot store: decode, resample, and encode again."""

from __future__ import annotations

from typing import Any

from .files import import_optional

__all__ = ["TEXT_SUBTITLES", "AudioConverter", "SubtitleConverter", "codec_name"]

TEXT_SUBTITLES = ("ass", "mov_text", "subrip", "text", "webvtt")
BITS_PER_CHANNEL = 96_000  # Per second, of audio that is encoded again.
PREFERRED_RATE = 48_000
DEFAULT_LAYOUTS = {1: "mono", 2: "stereo", 3: "2.1", 4: "4.0", 5: "5.0", 6: "5.1", 7: "6.1", 8: "7.1"}


def codec_name(stream: Any) -> str:
    """Return FFmpeg's name of the codec of a stream, whichever decoder is used."""
    context = stream.codec_context
    return str(context.codec.canonical_name) if context is not None else "an unknown codec"


class AudioConverter:
    """Encodes audio again, with its rate and its channels where the encoder has them."""

    def __init__(self, container: Any, source: Any, encoder: str) -> None:
        av = import_optional("av")
        codec, context = av.Codec(encoder, "w"), source.codec_context
        rates = codec.audio_rates or [PREFERRED_RATE]
        rate = context.sample_rate if context.sample_rate in rates else PREFERRED_RATE
        self.stream = container.add_stream(encoder, rate=rate)
        self._encoder = self.stream.codec_context
        # Old PCM has only a number of channels, which encoders refuse.
        layout = DEFAULT_LAYOUTS.get(context.layout.nb_channels, context.layout.name)
        self._encoder.layout = layout if context.layout.name.endswith("channels") else context.layout
        if codec.lossy:
            self._encoder.bit_rate = BITS_PER_CHANNEL * context.layout.nb_channels
        self._source = source
        self._resampler: Any = None

    def convert(self, packet: Any) -> list[Any]:
        """Return the packets for a packet of the source; None flushes decoder and encoder."""
        frames = self._source.codec_context.decode(packet)
        if self._resampler is None:  # The encoder was opened when the header was written.
            self._resampler = import_optional("av").AudioResampler(
                self._encoder.format,
                self._encoder.layout,
                self._encoder.sample_rate,
                self._encoder.frame_size or None,
            )
        if packet is None:
            frames = [*frames, None]
        packets = []
        for frame in frames:
            for part in self._resampler.resample(frame):
                packets += self.stream.encode(part)
        return packets + (self.stream.encode(None) if packet is None else [])


class SubtitleConverter:
    """Writes text subtitles in another format, without their styles."""

    def __init__(self, container: Any, source: Any, encoder: str) -> None:
        self.stream = container.add_stream(encoder)
        header = source.codec_context.subtitle_header
        if header is None:
            source.codec_context.open(strict=False)
            header = source.codec_context.subtitle_header
        self.stream.codec_context.subtitle_header = header
        self._source = source

    def convert(self, packet: Any) -> list[Any]:
        """Return the packets for a packet of the source; there are none without text."""
        if packet is None:
            return []
        av = import_optional("av")
        decoded = self._source.codec_context.decode2(packet)
        packets = []
        for part in decoded.rects if decoded is not None else ():
            if not part.dialogue.strip():
                continue
            subtitle = av.subtitles.subtitle.SubtitleSet.create(part.ass, 0, packet.duration or 0, packet.pts)
            encoded = self.stream.codec_context.encode_subtitle(subtitle)
            encoded.stream, encoded.time_base = self.stream, packet.time_base
            encoded.pts = encoded.dts = packet.pts
            encoded.duration = packet.duration
            packets.append(encoded)
        return packets
