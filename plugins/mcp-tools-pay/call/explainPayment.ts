// `x402_explain_payment`: shows the amount that the paying tools would pay for a resource, and the policy rule that
// decides it. It asks only the facilitator. It does not connect to a seller, and reserves, signs and logs nothing.
import { Effect, Schema } from "effect"
import {
  type Caller,
  defineTool,
  type DiscoveryClient,
  ReferenceInput,
  spelled,
  type ToolsConfig,
  VersionHashInput,
  type Wrapping
} from "../../mcp-tools/contract.ts"
import { Policy } from "../policy/Policy.ts"
import { depositOf } from "../channel/channelTerms.ts"
import { Config } from "../Config.ts"
import { chooseTerms, type PayingPolicy } from "./chooseTerms.ts"
import { chooseOperation, methods } from "./httpCall.ts"
import { decidedOn } from "./makePurchase.ts"
import { currentResource, TermsInput, askedTerms } from "./purchase.ts"
import { Explained } from "./ReceiptWire.ts"

const Input = Schema.Struct({
  ref: ReferenceInput,
  expectedVersionHash: Schema.optionalKey(VersionHashInput),
  method: Schema.optionalKey(Schema.Literals(methods).annotate({ description: "Of a resource with several." })),
  ...TermsInput
})

const explain = Effect.fn("Tools.explain")(function* (input: typeof Input.Type, caller: Caller) {
  const { expectedVersionHash, method } = input
  const { about, identity, resource, versionHash } = yield* currentResource(input.ref, expectedVersionHash)
  const accepting = identity.type === "http" ? yield* chooseOperation(resource, method) : resource
  const { batch } = yield* Config
  const option = yield* chooseTerms(accepting, askedTerms(input), batch)
  const { explain } = yield* Policy
  const deposit = depositOf(option, batch)
  const decided = decidedOn({ option, about, deposit })
  const { outcome, rule } = yield* explain(decided, caller)
  return {
    scheme: option.scheme,
    network: (yield* spelled)(option.network),
    asset: option.asset,
    payTo: option.payTo,
    // Amount that the policy decides on: for a payment channel the deposit. The price of one call is separate.
    amount: decided.option.amount.toString(),
    ...(deposit === undefined ? {} : { price: deposit.price.toString(), depositTo: deposit.contract }),
    versionHash,
    decision: outcome,
    rule
  }
})

export const explainTool = Effect.gen(function* () {
  const parts = yield* Effect.context<
    Config | DiscoveryClient | PayingPolicy | Policy | ToolsConfig | Wrapping | Effect.Services<typeof spelled>
  >()
  return defineTool({
    name: "x402_explain_payment",
    title: "What a payment would be",
    description:
      "What would be paid, and whether the operator's policy allows it, asks a person or refuses. Nothing is paid.",
    annotations: { readOnlyHint: true },
    pays: false,
    input: Input,
    output: Explained,
    run: (input, caller) => Effect.provideContext(explain(input, caller), parts)
  })
})
