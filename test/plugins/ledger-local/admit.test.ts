// Pages that ask the embedded ledger: our own may, others may not, and the friendbot gives them nothing.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { admit } from "../../../plugins/ledger-local/admit.ts"

const ownPage = "http://127.0.0.1:4022"

const world = (host = "127.0.0.1") => {
  const asked: Array<string> = []
  const answer = admit({ host, allowedOrigins: [ownPage] }, (request) =>
    Effect.sync(() => {
      asked.push(new URL(request.url).pathname)
      return new Response("{}")
    })
  )
  const ask = (path: string, headers: Record<string, string>, method = "GET") =>
    Effect.runPromise(answer(new Request(`http://127.0.0.1:8000${path}`, { method, headers: new Headers(headers) })))
  return { ask, asked }
}

describe("the embedded ledger", () => {
  it("refuses pages of other origins first, without naming allowed ones", async () => {
    const { ask, asked } = world()
    for (const headers of [
      { origin: "http://evil.example" },
      { origin: "null" },
      { origin: "http://localhost:3000" },
      { "sec-fetch-site": "cross-site" }
    ] as ReadonlyArray<Record<string, string>>) {
      for (const [path, method] of [
        ["/friendbot?addr=G", "GET"],
        ["/", "POST"],
        ["/", "OPTIONS"],
        ["/advance", "POST"]
      ]) {
        const response = await ask(path!, headers, method)
        expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([403, null])
      }
    }
    expect(asked).toEqual([])
  })

  it("answers our own pages and lists only their origins", async () => {
    const response = await world().ask("/", { origin: ownPage }, "POST")
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([200, ownPage])
    expect(response.headers.get("vary")).toBe("origin")
  })

  it("answers programs under this machine's and the test network's host names", async () => {
    const { ask } = world()
    for (const host of [
      "127.0.0.1:8000",
      "localhost:8000",
      "horizon-testnet.stellar.org",
      "soroban-testnet.stellar.org"
    ])
      expect([host, (await ask("/friendbot?addr=G", { host })).status]).toEqual([host, 200])
    expect((await ask("/friendbot?addr=G", { host: "evil.example:8000" })).status).toBe(403)
  })

  it("on a public address, accepts any Host but no foreign page", async () => {
    const { ask } = world("0.0.0.0")
    expect((await ask("/", { host: "ledger.test" })).status).toBe(200)
    expect((await ask("/", { host: "ledger.test", origin: "http://evil.example" })).status).toBe(403)
  })
})
