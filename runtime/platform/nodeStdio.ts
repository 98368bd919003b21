// The Stdio port on the process's own streams, for Node and for Deno. Nothing is read before somebody asks for the
// lines; a reader that is slower than the writer holds it up. Bytes that are not UTF-8 become replacement characters.
import { Deferred, Effect, Layer, Stream } from "effect"
import process from "node:process"
import { Stdio } from "../../kernel/platform/Stdio.ts"

/** Splits text into lines, dropping what is longer than allowed while it arrives. */
async function* linesOf(chunks: AsyncIterable<string>, lengthMax: number): AsyncGenerator<string | undefined> {
  let line = ""
  let tooLong = false
  for await (const chunk of chunks) {
    const parts = chunk.split("\n")
    for (const [index, part] of parts.entries()) {
      if (!tooLong) line += part
      if (line.length > lengthMax) {
        line = ""
        tooLong = true
      }
      if (index === parts.length - 1) break
      yield tooLong ? undefined : line.replace(/\r$/, "")
      line = ""
      tooLong = false
    }
  }
  if (line !== "") yield line
}

/** The port for Node and Deno. */
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
