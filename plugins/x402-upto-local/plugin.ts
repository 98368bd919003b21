// The settlement contract of `upto` on the embedded ledger, for the local profile. It deploys at the first boot and
// finds its work done at every later one. A ledger that plays faults is asked again for a while.
import { Effect, Layer } from "effect"
import { define } from "../../kernel/Plugin.ts"
import { localLedgerContract } from "../ledger-local/contract.ts"
import { deploy } from "./deploy.ts"

export const plugin = define({
  id: "x402-upto-local",
  summary: "Deploys the upto scheme's settlement contract on the embedded ledger.",
  boot: "required",
  needs: [localLedgerContract],
  migrations: "none",
  layer: Layer.effectDiscard(Effect.orDie(deploy().pipe(Effect.timeout("5 seconds"), Effect.retry({ times: 20 }))))
})
