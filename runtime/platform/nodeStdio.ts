// The Stdio port on the process's own streams, for Node and for Deno. Nothing is read before a consumer pulls lines; a
// slow reader applies back-pressure to the writer. Invalid UTF-8 becomes replacement characters.
import { Deferred, Effect, Layer, Stream } from "effect"
import process from "node:process"
import { type LongLine, Stdio } from "../../kernel/platform/Stdio.ts"

/** Characters kept at each end of a line that is too long. */
const endLength = 1_024

/** Splits text into lines; of a line above the limit, both ends are kept while it arrives. */
export async function* linesOf(chunks: AsyncIterable<string>, lengthMax: number): AsyncGenerator<string | LongLine> {
  let line = ""
  let beginning: string | undefined
  const ended = () => {
    const text = line.replace(/\r$/, "")
    const whole = beginning === undefined ? text : { beginning, end: text.slice(-endLength) }
    line = ""
    beginning = undefined
    return whole
  }
  for await (const chunk of chunks) {
    const parts = chunk.split("\n")
    for (const [index, part] of parts.entries()) {
      line += part
      if (beginning === undefined && line.length > lengthMax) beginning = line.slice(0, endLength)
      if (beginning !== undefined) line = line.slice(-endLength)
      if (index === parts.length - 1) break
      yield ended()
    }
  }
  if (line !== "") yield ended()
}

export const layer: Layer.Layer<Stdio> = Layer.effect(
  Stdio,
  Effect.gen(function* () {
    const left = yield* Deferred.make<void>()
    return Stdio.of({
      lines: (lengthMax) =>
        Stream.orDie(Stream.fromAsyncIterable(linesOf(process.stdin.setEncoding("utf8"), lengthMax), (error) => error)),
      write: (line) =>
        Effect.callback<void>((resume) => {
          process.stdout.write(`${line}\n`, () => resume(Effect.void))
        }),
      leave: Effect.asVoid(Deferred.succeed(left, undefined)),
      left: Deferred.await(left)
    })
  })
)
