// The option that is paid: by the agent's wishes and the operator's policy, from the catalog alone.
import { expect, it } from "@effect/vitest"
import { Keypair, StrKey } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { type AskedTerms, chooseTerms, PayingPolicy } from "../../../plugins/mcp-tools-pay/call/chooseTerms.ts"

const payTo = Keypair.random().publicKey()
const [usdc, other] = ["CUSDC", "COTHER"]
const offer = {
  scheme: "exact",
  network: "stellar:testnet",
  asset: usdc,
  amount: "100",
  payTo,
  maxTimeoutSeconds: 60,
  extra: { areFeesSponsored: true }
}
const contract = StrKey.encodeContract(new Uint8Array(32).fill(7) as never)
const batch = { contract, depositMax: 1_000n, depositCalls: 5, withdrawDelayMax: 3_600, refundIdleMillis: 1 }
const channel = {
  ...offer,
  scheme: "batch-settlement",
  extra: { batchContract: contract, receiverAuthorizer: payTo, withdrawDelay: 900, minDeposit: "1000" }
}

const policy = PayingPolicy.of({
  network: "ledger:testnet",
  assets: new Map([
    [usdc, 500n],
    ["CSMALL", 50n]
  ]),
  perCall: 200n,
  timeoutSecondsMax: 300
})

/** The amount and asset of the chosen option, or the reason of the refusal. */
const chosen = (accepts: unknown, asked: AskedTerms = {}, allowed?: typeof batch) =>
  chooseTerms({ accepts }, asked, allowed).pipe(
    Effect.match({
      onFailure: ({ message }) => message,
      onSuccess: ({ amount, asset, scheme }) => `${scheme} ${amount} ${asset}`
    }),
    Effect.provideService(PayingPolicy, policy)
  )

const cases: ReadonlyArray<readonly [string, Effect.Effect<string>, string | RegExp]> = [
  ["the first payable one", chosen([{ ...offer, asset: other }, offer, { ...offer, amount: "1" }]), "exact 100 CUSDC"],
  ["the requested asset", chosen([offer, { ...offer, asset: "CSMALL", amount: "9" }], { asset: "CSMALL" }), /9 CSMALL/],
  ["the network's other name", chosen([offer], { network: "ledger:testnet" }), "exact 100 CUSDC"],
  ["another network", chosen([offer], { network: "stellar:pubnet" }), /this network is not enabled/],
  ["an unknown network", chosen([offer], { network: "eip155:1" }), /this network is not enabled/],
  ["an offer on another network", chosen([{ ...offer, network: "stellar:pubnet" }]), /accepts no payment with this/],
  ["an asset that is not offered", chosen([offer], { asset: other }), /accepts no payment with this/],
  ["an asset that is not allowed", chosen([{ ...offer, asset: other }]), /the operator allows no asset/],
  ["an unreadable offer", chosen([{ ...offer, amount: "-1" }]), /accepts no payment with this/],
  ["an account's second name", chosen([{ ...offer, payTo: `M${payTo}` }]), /is not the address of an account/],
  ["a contract as recipient", chosen([{ ...offer, payTo: contract }]), "exact 100 CUSDC"],
  ["a memo", chosen([{ ...offer, extra: { memoRequired: true } }]), /requires a memo/],
  ["no memo", chosen([{ ...offer, extra: { memoRequired: false } }]), "exact 100 CUSDC"],
  ["the longest timeout", chosen([{ ...offer, maxTimeoutSeconds: 300 }]), "exact 100 CUSDC"],
  ["a longer timeout", chosen([{ ...offer, maxTimeoutSeconds: 301 }]), /valid for too long/],
  ["the price of a call at most", chosen([{ ...offer, amount: "200" }]), "exact 200 CUSDC"],
  ["a dearer call", chosen([{ ...offer, amount: "201" }]), /costs more than the limit/],
  ["an asset's own limit", chosen([{ ...offer, asset: "CSMALL", amount: "51" }]), /costs more than the limit/],
  ["the agent's limit", chosen([offer], { maxAtomicAmount: 99n }), /costs more than the limit/],
  ["the agent's limit, met", chosen([offer], { maxAtomicAmount: 100n }), "exact 100 CUSDC"],
  ["another scheme", chosen([offer], { scheme: "upto" }, batch), /only the scheme exact/],
  ["a channel without deposits", chosen([channel], { scheme: "batch-settlement" }), /only the scheme exact/],
  ["a channel as the only offer", chosen([channel], {}, batch), "batch-settlement 100 CUSDC"],
  ["a channel only where deposits are allowed", chosen([channel]), /accepts no payment with this/],
  ["exact before a channel", chosen([channel, offer], {}, batch), "exact 100 CUSDC"],
  ["a requested channel", chosen([offer, channel], { scheme: "batch-settlement" }, batch), /^batch-settlement 100/]
]

/** Changes of a channel's terms that are refused. */
const refused: ReadonlyArray<readonly [string, object, RegExp]> = [
  ["another contract", { batchContract: payTo }, /does not allow the seller's batch contract/],
  ["no authorizer", { receiverAuthorizer: undefined }, /does not name an authorizer/],
  ["an authorizer that is no account", { receiverAuthorizer: contract }, /does not name an authorizer/],
  ["a short delay", { withdrawDelay: 899 }, /delay is not valid/],
  ["a delay that is no number", { withdrawDelay: "900" }, /delay is not valid/],
  ["a long delay", { withdrawDelay: 3_601 }, /delay is longer/],
  ["a large deposit", { minDeposit: "1001" }, /larger deposit/]
]

it.effect.each([
  ...cases,
  ...refused.map(
    ([name, extra, reason]) =>
      [name, chosen([{ ...channel, extra: { ...channel.extra, ...extra } }], {}, batch), reason] as const
  )
])("chooses by the policy: %s", ([, choice, expected]) =>
  Effect.map(choice, (found) =>
    expect(found).toEqual(typeof expected === "string" ? expected : expect.stringMatching(expected))
  )
)
