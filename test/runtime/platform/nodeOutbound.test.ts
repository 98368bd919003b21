// Answers of untrusted hosts: a body in a coding costs no more than the bytes that its caller accepts.
import { Effect, Result } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { BrotliDecompress, brotliCompressSync, constants, Gunzip, gzipSync } from "node:zlib"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { Outbound } from "../../../kernel/platform/Outbound.ts"
import { layer } from "../../../runtime/platform/nodeOutbound.ts"

const bytesMax = 65_536
const long = Buffer.alloc(33_554_432)
const bodies: Readonly<Record<string, Buffer>> = {
  br: brotliCompressSync(long, { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } }),
  gzip: gzipSync(long)
}

const server = createServer((request, response) => {
  const coding = request.url!.slice(1)
  response.writeHead(200, { "content-encoding": coding }).end(bodies[coding])
})
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const send = (coding: string, partMillis?: number) =>
  Effect.gen(function* () {
    const outbound = yield* Outbound
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${coding}`
    const request = { url, address: "127.0.0.1", method: "GET", headers: {}, timeoutMillis: 10_000, bytesMax }
    return yield* Effect.result(outbound.send({ ...request, decodes: true, partMillis }))
  }).pipe(Effect.provide(layer), Effect.runPromise)

for (const [coding, decoder] of [
  ["br", BrotliDecompress],
  ["gzip", Gunzip]
] as const) {
  it(`stops decoding ${coding} once a body is too long`, async () => {
    const destroyed = vi.spyOn(decoder.prototype, "destroy")
    const refused = await send(coding)
    expect(Result.isFailure(refused) && refused.failure.reason).toBe("too_large")
    expect(destroyed).toHaveBeenCalled()
    destroyed.mockClear()
    const part = Result.getOrThrow(await send(coding, 5_000))
    expect([part.body.length, part.cut]).toEqual([bytesMax, "too_large"])
    expect(destroyed).toHaveBeenCalled()
    destroyed.mockRestore()
  })
}
