// The examples' witness behind HTTP. It reads the facilitator's DID document with its first request.
import { Effect, FileSystem } from "effect"
import { createServer } from "node:http"
import { openWitness } from "../../../examples/receipts/witness.mjs"

export const startWitness = Effect.fnUntraced(function* (port: number) {
  const files = yield* FileSystem.FileSystem
  const file = `${yield* files.makeTempDirectoryScoped()}/witness.json`
  const name = "witness.example"
  let facilitator = ""
  const { key } = yield* Effect.promise(() => openWitness({}, file, name))
  let opened: Promise<any> | undefined
  const server = createServer(async (request, response) => {
    let body = ""
    for await (const chunk of request) body += chunk
    try {
      opened ??= fetch(`${facilitator}/.well-known/did.json`).then(async (answer) =>
        openWitness(await answer.json(), file, name)
      )
      response.end(await (await opened).add(body))
    } catch (error: any) {
      opened = error?.status === undefined ? undefined : opened
      response.writeHead(error?.status ?? 500).end(String(error?.message))
    }
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => server.close())
  )
  return {
    name,
    setting: `receipts.witnesses=${JSON.stringify([{ url: `http://127.0.0.1:${port}`, key }])}`,
    trust: (url: string) => void (facilitator = url)
  }
})
