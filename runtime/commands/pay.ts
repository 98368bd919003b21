// `tollkeeper pay`: the example `examples/pay.ts`, as `npm run pay` runs it in a checkout: two new accounts of the
// local ledger, a seller and a buyer make one payment, explained step by step. The example reads its own flags.
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"

export const pay = Command.make(
  "pay",
  {
    state: Flag.String("state").pipe(
      Flag.withDescription("Folder of the facilitator to pay through; default the one that runs on this machine"),
      Flag.optional
    ),
    upto: Flag.Boolean("upto").pipe(
      Flag.withDescription("The seller charges by the word, the buyer signs a maximum; default false"),
      Flag.withDefault(false)
    ),
    batch: Flag.Boolean("batch").pipe(
      Flag.withDescription("The buyer deposits once and pays a thousand calls by vouchers; default false"),
      Flag.withDefault(false)
    )
  },
  () => Effect.promise(() => import("../../examples/pay.ts"))
).pipe(Command.withDescription("Make one payment on the local ledger, between a seller and a buyer of its own"))
