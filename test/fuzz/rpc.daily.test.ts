// A sample of `npm run fuzz -- rpc`: nearly right requests never stop the ledger, and no answer is an internal error.
import { expect, it } from "vitest"
import { fuzzRpc } from "./RpcFuzz.ts"

it("answers random and mutated requests as specified, and some by every method", async () => {
  const { breaches, refusals, results } = await fuzzRpc(2_000, 1)
  expect(breaches).toEqual([])
  for (const [method, answered] of results) expect(answered, method).toBeGreaterThan(10)
  for (const code of [-32_700, -32_600, -32_602, 400, 404, 405])
    expect(refusals.get(code) ?? 0, `${code}`).toBeGreaterThan(0)
}, 120_000)
