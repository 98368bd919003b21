// `tollkeeper check-seller URL`: plays a buyer against any x402 seller and prints the problems to fix. On a ledger with
// a friendbot it pays from a new account, elsewhere from BUYER_SECRET; without either it does not pay. Exit code 1 if
// there are problems to fix.
import { Data, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import process from "node:process"
import { answer, jsonFlag } from "./CommandTarget.ts"

class SellerWanting extends Data.TaggedError("SellerWanting")<{ readonly message: string }> {}

const optional = (name: string, words: string) =>
  Flag.String(name).pipe(Flag.withDescription(words), Flag.optional, Flag.map(Option.getOrUndefined))

export const checkSeller = Command.make(
  "check-seller",
  {
    url: Argument.String("url").pipe(Argument.withDescription("URL of the paid page")),
    method: optional("method", "Default GET, or POST with a body"),
    body: optional("body", "Body to send with each request; default none"),
    facilitator: optional(
      "facilitator",
      "Facilitator whose /prepare to call; default the one that runs on this machine"
    ),
    ledger: optional("ledger", "A ledger RPC; one with a friendbot pays the checks; default the running one's"),
    network: Flag.String("network").pipe(
      Flag.withDescription("Network to pay on; default stellar:testnet"),
      Flag.withDefault("stellar:testnet")
    ),
    maxAmount: Flag.String("max-amount").pipe(
      Flag.withDescription("Maximum of one payment, atomic units of USDC; default 1000000"),
      Flag.withDefault("1000000")
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ body, json, maxAmount, method, network, url, ...named }) {
    const report = yield* Effect.tryPromise({
      try: async () => {
        const { checkSeller: check, findBuyer } = await import("../../examples/checkSeller.ts")
        const secret = process.env["BUYER_SECRET"]
        const buyer = await findBuyer({ ...named, network, secret, maxAmount: BigInt(maxAmount) })
        const request = { ...(method === undefined ? {} : { method }), ...(body === undefined ? {} : { body }) }
        return check({ url, ...request, ...(buyer === undefined ? {} : { buyer }) })
      },
      catch: (cause) => new SellerWanting({ message: `${url} was not checked: ${String((cause as Error).message)}` })
    })
    const lines = report.map(({ name, result, words }) => `${result.padEnd(8)}${name.padEnd(22)}${words}`)
    yield* answer(json, { url, checks: report }, lines)
    const wanting = report.filter(({ result }) => result === "mend").length
    if (wanting > 0) return yield* new SellerWanting({ message: `${wanting} of ${report.length} checks need a fix` })
  })
).pipe(Command.withDescription("Test an x402 seller as a buyer, and print what to fix"))
