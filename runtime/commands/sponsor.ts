// `tollkeeper sponsor`: moves the XLM of rotated-out sponsors, in a running facilitator.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { SqlClient } from "effect/sql"
import { decimalOf } from "../../kernel/settlement/operators/Books.ts"
import { SponsorDrain } from "../../kernel/settlement/sponsor/SponsorDrain.ts"
import { StateRefused } from "../state.ts"
import { answer, jsonFlag, noted, placeFlags, reasonFlag, Within } from "./CommandTarget.ts"

const address = Schema.String.check(
  Schema.makeFilter((text) => (StrKey.isValidEd25519PublicKey(text) ? undefined : "must be an account, G…"))
)

const drain = Command.make(
  "drain",
  {
    ...placeFlags(),
    json: jsonFlag,
    reason: reasonFlag,
    to: Flag.String("to").pipe(
      Flag.withSchema(address),
      Flag.withDescription("Account that receives the XLM, such as the new sponsor; it must exist on the ledger")
    )
  },
  Effect.fn(function* ({ json, reason, to, ...place }) {
    const within = yield* Within
    const found = within && Context.getOption(within.services, SponsorDrain)
    if (found === undefined || Option.isNone(found))
      return yield* new StateRefused({
        message: `no facilitator runs over ${place.state} that could sign; name another folder with --state DIR`
      })
    const drained = yield* noted({ action: "drain", subject: to, reason })(found.value.drain(to), (drained) => ({
      before: drained.map(({ account, amountStroops }) => `${account} ${amountStroops} stroops`).join(", "),
      after: to
    })).pipe(Effect.provide(within!.services as Context.Context<SqlClient.SqlClient>))
    yield* answer(
      json,
      { to, drained },
      drained.length === 0
        ? ["no former sponsor holds XLM above its reserve"]
        : drained.map(({ account, amountStroops }) => `${decimalOf(amountStroops, 7)} XLM of ${account} are at ${to}`)
    )
  })
).pipe(Command.withDescription("Move the XLM of rotated-out sponsors to an account, all but their reserves"))

export const sponsor = Command.make("sponsor").pipe(
  Command.withDescription("The account that pays the fees, for operators"),
  Command.withSubcommands([drain])
)
