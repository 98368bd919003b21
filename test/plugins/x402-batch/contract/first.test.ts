import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { batchFolder } from "../../../contract/batch.ts"
import { errorOf, succeeded, lineBalance, payer, payee } from "../../ledger-local/engine/World.ts"
import { BatchWorld } from "./BatchWorld.ts"
const wasm = Uint8Array.from(readFileSync(`${batchFolder}batch.wasm`))
it("goes", () => {
  const w = new BatchWorld(wasm)
  const c = w.config()
  const go = (r: any, n: string) => {
    if (!r.ok) console.log(n, errorOf(r))
    const s = succeeded(r)
    s.changes.commit()
    console.log(n, s.instructions, s.events.length)
    return s
  }
  go(w.deposit(c, 500n), "deposit")
  go(w.deposit(c, 100n), "top-up")
  console.log(w.channel(c))
  go(w.claim([{ config: c, max: 300n, total: 200n }]), "claim")
  go(w.claim([{ config: c, max: 300n, total: 200n }]), "again")
  go(w.settle(), "settle")
  go(w.refund(c, 100n), "refund")
  go(w.withdrawStart(c), "start")
  w.closeTime += 900n
  go(w.withdrawEnd(c), "end")
  console.log(w.channel(c), w.receiver(), w.held(), lineBalance(w.store, payer), lineBalance(w.store, payee))
  expect(w.held()).toBe(0n)
})
