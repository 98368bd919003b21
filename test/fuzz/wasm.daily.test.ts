// A sample of `npm run fuzz -- wasm`: random and mutated modules never stop the ledger, and no answer is an internal
// error. The command runs as many as one has time for.
import { describe, expect, it } from "vitest"
import { Dice } from "./Dice.ts"
import { FuzzLedger } from "./FuzzLedger.ts"
import { wasmModule } from "./WasmModule.ts"
import { testnet } from "../../plugins/ledger-local/engine/state/NetworkSettings.ts"

const SIZE = 16
const BATCHES = 20

describe("random and mutated contract modules", () => {
  it("never stop the ledger, and some of them run", async () => {
    const limits = { ...testnet.limits, txInstructionsMax: 20_000_000 }
    const ledger = await FuzzLedger.open(SIZE, { settings: { ...testnet, limits } })
    let [uploaded, ran] = [0, 0]
    for (let seed = 0; seed < BATCHES; seed++) {
      const dice = new Dice(seed)
      const outcome = await ledger.run(Array.from({ length: SIZE }, () => wasmModule(dice)))
      expect(outcome.breaches).toEqual([])
      uploaded += outcome.uploaded
      ran += outcome.ran
    }
    await ledger.close()
    expect(uploaded).toBeGreaterThan(60)
    expect(ran).toBeGreaterThan(5)
  }, 240_000)
})
