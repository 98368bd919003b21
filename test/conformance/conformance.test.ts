// Tests the instruments of the conformance run: a changed payment must differ only in the intended way, the tap must
// keep all exchanges, and the report must not pass a run that failed or did nothing.
import { createServer } from "node:http"
import { once } from "node:events"
import { inspectAuthEntry, Keypair, xdr } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { inDialect } from "../../runtime/redteam/ask.ts"
import { refusals } from "./refusals.ts"
import { makeReport } from "./report.ts"
import { startTap } from "./tap.ts"

const honest = async () =>
  (
    await makePayment({
      latestLedger: 1_000,
      payer: Keypair.random(),
      payTo: Keypair.random().publicKey(),
      amount: 10_000n,
      network: "stellar:testnet"
    })
  ).body

const signatureOf = (body: any): Uint8Array => {
  const envelope = xdr.TransactionEnvelope.fromXdr(body.paymentPayload.payload.transaction, "base64")
  const operation = (envelope as any).v1.tx.operations[0].body.invokeHostFunctionOp
  return inspectAuthEntry(operation.auth[0]).signers[0]!.signatures![0]!.signature
}

describe("changed payments", () => {
  it("differ from the honest one, which is left as it was", async () => {
    const body = await honest()
    const text = JSON.stringify(body)
    const changed = refusals.map(({ apply }) => JSON.stringify(apply(body, Keypair.random().publicKey())))
    expect(JSON.stringify(body)).toBe(text)
    expect(new Set([text, ...changed]).size).toBe(refusals.length + 1)
  })

  it("flip a single bit where they say so", async () => {
    const body = await honest()
    const flips = refusals.filter(({ change }) => change.includes("of the signature"))
    expect(flips).toHaveLength(3)
    for (const { apply } of flips) {
      const [before, after] = [signatureOf(body), signatureOf(apply(body, ""))]
      const bits = before.reduce((sum, byte, i) => sum + (byte ^ after[i]!).toString(2).replaceAll("0", "").length, 0)
      expect(bits).toBe(1)
    }
  })

  it("expect the word of the network's own spelling", () => {
    expect(inDialect("invalid_exact_ledger_payload_wrong_amount", "stellar:testnet")).toBe(
      "invalid_exact_stellar_payload_wrong_amount"
    )
    expect(inDialect("invalid_exact_ledger_payload_wrong_amount", "ledger:testnet")).toBe(
      "invalid_exact_ledger_payload_wrong_amount"
    )
  })
})

describe("the tap", () => {
  it("passes on and keeps the exact bodies, statuses and headers", async () => {
    const target = createServer(async (request, response) => {
      let body = ""
      for await (const chunk of request) body += chunk
      response
        .writeHead(409, { "content-type": "application/json", "extension-responses": "e30=" })
        .end(`{"got":${body.length}}`)
    }).listen(0, "127.0.0.1")
    await once(target, "listening")
    const tap = await startTap(`http://127.0.0.1:${(target.address() as { port: number }).port}`)
    const response = await fetch(`${tap.url}/settle`, { method: "POST", body: '{"a": 1}' })
    expect([response.status, response.headers.get("extension-responses"), await response.text()]).toEqual([
      409,
      "e30=",
      '{"got":8}'
    ])
    expect(tap.of("/settle")).toMatchObject([{ method: "POST", body: '{"a": 1}', status: 409, answer: '{"got":8}' }])
    expect(tap.of("/verify")).toEqual([])
    await tap.stop()
    target.close()
  })
})

describe("the report", () => {
  const runOf = async (work: Parameters<ReturnType<typeof makeReport>["part"]>[1]) => {
    const lines: Array<string> = []
    const report = makeReport((line) => lines.push(line))
    await report.part("a part", work)
    return { held: report.close(), last: lines.at(-1) }
  }

  it("is green when every case held, as its last line says", async () => {
    expect(await runOf(async ({ check }) => void (await check("holds", () => {})))).toEqual({
      held: true,
      last: "1 passed, 0 failed"
    })
  })

  it("is red after a failed case, an aborted part, or no case", async () => {
    expect(
      await runOf(async ({ check }) => {
        await check("fails", () => {
          throw new Error("no")
        })
        await check("holds", () => {})
      })
    ).toEqual({ held: false, last: "1 passed, 1 failed" })
    expect(
      (
        await runOf(async () => {
          throw new Error("broke off")
        })
      ).held
    ).toBe(false)
    expect((await runOf(async () => {})).held).toBe(false)
  })
})
