// `tollkeeper agent account`: the spending account of an agent, for its owner. The owner's seed is in the environment
// of this command, and the agent's key stays with its tool server.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, Layer, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { administration, type OwnerStep, type SpendingState } from "../../plugins/mcp-tools-pay/plugin.ts"
import * as NodeHttpCalls from "../platform/nodeHttpCalls.ts"
import { announcedAt, answer, type CommandTarget, defaulting, jsonFlag, placeFlags } from "./CommandTarget.ts"

const valid = (is: (text: string) => boolean, words: string) =>
  Schema.String.check(Schema.makeFilter((text) => (is(text) ? undefined : `must be ${words}`)))
const contract = valid(StrKey.isValidContract, "a contract, C…")
const party = valid(
  (text) => StrKey.isValidContract(text) || StrKey.isValidEd25519PublicKey(text),
  "an account (G…) or a contract (C…)"
)
const units = Schema.BigIntFromString.check(Schema.isGreaterThanBigInt(0n))

const accountArgument = Argument.String("account").pipe(
  Argument.withSchema(contract),
  Argument.withDescription("The spending account, C…")
)
const amountArgument = Argument.String("amount").pipe(
  Argument.withSchema(units),
  Argument.withDescription("Atomic units")
)
const assetFlag = Flag.String("asset").pipe(
  Flag.withSchema(contract),
  Flag.withDescription("The asset's contract; default the policy's"),
  Flag.optional
)
const common = { ...placeFlags("tools"), json: jsonFlag }
const owners = {
  ...common,
  ownerEnv: Flag.String("owner-env").pipe(
    defaulting("Environment variable with the owner's seed", "AGENT_OWNER_SECRET")
  )
}
const policyFlags = {
  agent: Flag.String("agent").pipe(
    Flag.withSchema(valid(StrKey.isValidEd25519PublicKey, "a key, G…")),
    Flag.withDescription("The key of the agent's tool server, G…")
  ),
  asset: Flag.String("asset").pipe(Flag.withSchema(contract), Flag.withDescription("The only asset that it may pay")),
  cap: Flag.String("cap").pipe(
    Flag.withSchema(units),
    Flag.withDescription("Maximum of all payments in a UTC day of the ledger, atomic units")
  ),
  days: Flag.Int("days").pipe(
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 180 }))),
    defaulting("Days until the agent's key expires", 30)
  ),
  to: Flag.String("to").pipe(
    Flag.withSchema(party),
    Flag.withDescription("A recipient; default anyone, may be repeated up to 32 times"),
    Flag.between(0, 32)
  )
}

interface PolicyWords {
  readonly agent: string
  readonly asset: string
  readonly cap: bigint
  readonly days: number
  readonly to: ReadonlyArray<string>
}

const policyOf = ({ agent, asset, cap, days, to }: PolicyWords) => ({ agent, asset, cap, days, recipients: to })

const linesOf = ({ account, balance, isArchived, owner, policy, spentToday }: SpendingState): ReadonlyArray<string> => [
  `account    ${account}`,
  `owner      ${owner}`,
  ...(isArchived ? ["archived   the ledger restores it with the next payment or command, for a fee"] : []),
  ...(policy === undefined
    ? ["policy     revoked: no key of an agent moves anything"]
    : [
        `agent      ${policy.agent} until ${new Date(Number(policy.expiresAt) * 1_000).toISOString()}`,
        `asset      ${policy.asset}, ${balance ?? 0n} atomic units are here`,
        `cap        ${policy.cap} a day, of which ${spentToday} are spent today`,
        `pays       ${policy.recipients.length === 0 ? "anyone" : policy.recipients.join(", ")}`
      ])
]

const reached = (place: CommandTarget) => NodeHttpCalls.layer.pipe(Layer.provideMerge(announcedAt(place)))

const taken = (place: CommandTarget & { readonly json: boolean; readonly ownerEnv: string }, step: OwnerStep) =>
  Effect.gen(function* () {
    const { ownAccount } = yield* administration
    const state = yield* ownAccount(step, place.ownerEnv)
    yield* answer(place.json, state, linesOf(state))
  }).pipe(Effect.provide(reached(place)))

const create = Command.make(
  "create",
  {
    ...owners,
    ...policyFlags,
    fund: Flag.String("fund").pipe(
      Flag.withSchema(units),
      Flag.withDescription("Atomic units that move from the owner to the account; default none"),
      Flag.optional
    )
  },
  ({ fund, ...flags }) =>
    taken(flags, { step: "create", policy: policyOf(flags), amount: Option.getOrElse(fund, () => 0n) })
).pipe(Command.withDescription("Create and fund a spending account for an agent's key; the owner pays the fees"))

const allow = Command.make("allow", { ...owners, ...policyFlags, account: accountArgument }, (flags) =>
  taken(flags, { step: "allow", account: flags.account, policy: policyOf(flags) })
).pipe(Command.withDescription("Replace the policy: another key, cap, expiry or list of recipients"))

const revoke = Command.make("revoke", { ...owners, account: accountArgument }, (flags) =>
  taken(flags, { step: "revoke", account: flags.account })
).pipe(Command.withDescription("End the policy: the agent's key moves nothing from now on"))

const moving = (step: "fund" | "withdraw", words: string) =>
  Command.make(
    step,
    { ...owners, asset: assetFlag, account: accountArgument, amount: amountArgument },
    ({ account, amount, asset, ...flags }) =>
      taken(flags, {
        step,
        account,
        amount,
        ...Option.match(asset, { onNone: () => ({}), onSome: (asset) => ({ asset }) })
      })
  ).pipe(Command.withDescription(words))

const show = Command.make("show", { ...common, account: accountArgument }, ({ account, json, ...place }) =>
  Effect.gen(function* () {
    const { showAccount } = yield* administration
    const state = yield* showAccount(account)
    yield* answer(json, state, linesOf(state))
  }).pipe(Effect.provide(reached(place)))
).pipe(Command.withDescription("Show the policy, the balance and the amount spent today; needs no key"))

const account = Command.make("account").pipe(
  Command.withDescription("The spending account of an agent, which a stolen key cannot empty"),
  Command.withSubcommands([
    create,
    moving("fund", "Move an amount from the owner to the account, and extend its life"),
    allow,
    revoke,
    moving("withdraw", "Move an amount back to the owner, also after a revocation"),
    show
  ])
)

export const agent = Command.make("agent").pipe(
  Command.withDescription("Manage the accounts that agents pay from"),
  Command.withSubcommands([account])
)
