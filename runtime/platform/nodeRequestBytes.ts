// The RequestBytes port on `node:http`, for Node and for Deno. A body that is complete is taken immediately, which most
// are (`httpServer.ts`); of any other the chunks as the parser gives them, without a stream between. A body over the
// limit is not read further; the server handles the rest of it, and its connection, once the response is written. The
// server's own path serves a client that waits for `Expect: 100-continue`, and a body that is already being read.
import { Duration, Effect } from "effect"
import { IncomingMessage } from "node:http"
import { BodyReadError, joined, type ReadBytes, readStreamed } from "../../kernel/platform/RequestBytes.ts"

const read = (incoming: IncomingMessage, bytesMax: number, millis: number) =>
  Effect.callback<Uint8Array, BodyReadError>((resume) => {
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    const leave = () => {
      clearTimeout(timer)
      incoming.off("data", take).off("end", end).off("close", cutOff)
    }
    const refuse = (reason: BodyReadError["reason"]) => {
      leave()
      incoming.pause()
      resume(Effect.fail(new BodyReadError({ reason })))
    }
    const take = (chunk: Uint8Array) => {
      bytes += chunk.length
      if (bytes > bytesMax) return refuse("too long")
      chunks.push(chunk)
    }
    const end = () => {
      leave()
      resume(Effect.succeed(joined(chunks, bytes)))
    }
    const cutOff = () => refuse("cut off")
    const timer = setTimeout(cutOff, millis)
    incoming.on("data", take).on("end", end).on("close", cutOff)
    // Stays, so that a connection error after this is never an unhandled event.
    incoming.once("error", cutOff)
    return Effect.sync(leave)
  })

/** Whether the body is complete. Deno reports a chunked one complete too early: its length must match there. */
const isHere = ({ complete, headers, readableLength }: IncomingMessage): boolean =>
  complete && (!("Deno" in globalThis) || Number(headers["content-length"]) === readableLength)

const tooLong = Effect.fail(new BodyReadError({ reason: "too long" }))

/** Reads a complete body; Deno returns one piece at a time. */
const takeWhole = (incoming: IncomingMessage, bytesMax: number): Effect.Effect<Uint8Array, BodyReadError> => {
  if (incoming.readableLength > bytesMax) return tooLong
  const length = incoming.readableLength
  const chunks: Array<Uint8Array> = []
  for (let bytes = 0; bytes < length;) {
    const chunk = incoming.read() as Uint8Array | null
    if (chunk === null) return Effect.fail(new BodyReadError({ reason: "cut off" }))
    chunks.push(chunk)
    bytes += chunk.length
  }
  return Effect.succeed(joined(chunks, length))
}

export const readNode: ReadBytes = (request, within) => {
  const { source } = request
  if (
    !(source instanceof IncomingMessage) ||
    source.headers.expect !== undefined ||
    source.readableDidRead ||
    source.destroyed
  )
    return readStreamed(request, within)
  const { bytesMax, longest } = within
  return isHere(source) ? takeWhole(source, bytesMax) : read(source, bytesMax, Duration.toMillis(longest))
}
