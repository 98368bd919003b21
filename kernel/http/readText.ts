// The body of an answer as text, up to a limit: a longer body fails as soon as the limit is passed, and is not read on.
import { Effect, Stream } from "effect"

export const readText = <E, R, F>(
  stream: Stream.Stream<Uint8Array, E, R>,
  bytesMax: number,
  tooLong: () => F
): Effect.Effect<string, E | F, R> =>
  Effect.map(
    Stream.runFoldEffect(
      stream,
      () => ({ text: "", bytes: 0, decoder: new TextDecoder() }),
      ({ bytes, decoder, text }, chunk) =>
        bytes + chunk.length > bytesMax
          ? Effect.fail(tooLong())
          : Effect.succeed({
              text: text + decoder.decode(chunk, { stream: true }),
              bytes: bytes + chunk.length,
              decoder
            })
    ),
    ({ text }) => text
  )
