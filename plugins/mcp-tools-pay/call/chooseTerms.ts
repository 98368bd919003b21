// Selects the option to pay and its maximum amount from the catalog only, before any connection to the seller. We pay
// `exact`, and `batch-settlement` if the operator allows deposits and the call can use them. Any other scheme is
// refused, never converted (S217–S219, S230).
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Option } from "effect"
import { Network } from "../../../kernel/config/Network.ts"
import { readNetwork } from "../../../kernel/Dialect.ts"
import { toolError, type ToolError } from "../../mcp-tools/contract.ts"
import { batchScheme, readChannelTerms } from "../channel/channelTerms.ts"
import { type BatchPayments, Config } from "../Config.ts"
import { isFields, type PaymentOption, readOptions } from "../seller/SellerWire.ts"

export interface AskedTerms {
  readonly network?: string | undefined
  readonly scheme?: string | undefined
  readonly asset?: string | undefined
  readonly maxAtomicAmount?: bigint | undefined
}

/** Payments that an operator allows agents to make. */
export class PayingPolicy extends Context.Service<
  PayingPolicy,
  {
    /** Neutral name. */
    readonly network: string
    /** Maximum single payment per allowed asset, atomic units. */
    readonly assets: ReadonlyMap<string, bigint>
    readonly perCall: bigint
    readonly timeoutSecondsMax: number
  }
>()("tollkeeper/mcp-tools-pay/PayingPolicy") {
  static readonly layer = Layer.effect(
    PayingPolicy,
    Effect.gen(function* () {
      const { assets, id, timeoutSecondsMax } = yield* Network
      const { perCall } = yield* Config
      return PayingPolicy.of({
        network: id,
        assets: new Map([...assets].map(([contract, { paymentMax }]) => [contract, paymentMax])),
        perCall,
        timeoutSecondsMax
      })
    })
  )
}

/**
 * True if the recipient is written as the address that receives the balance. A muxed address is a second name of an
 * account, and neither the rules nor the limits of the account would match it.
 */
const isPaidByName = ({ payTo }: PaymentOption): boolean =>
  StrKey.isValidEd25519PublicKey(payTo) || StrKey.isValidContract(payTo)

/** `exact` if the seller offers it; a channel if it is the only offer and the operator allows deposits. */
const schemeOf = ({ accepts }: { readonly accepts?: unknown }, batch: BatchPayments | undefined): string => {
  const offered = new Set(readOptions(accepts).map(({ scheme }) => scheme))
  return batch !== undefined && !offered.has("exact") && offered.has(batchScheme) ? batchScheme : "exact"
}

const rejected = (message: string, details?: unknown) => toolError("PAYMENT_REJECTED", message, details)

export const chooseTerms = (
  resource: { readonly accepts?: unknown },
  asked: AskedTerms,
  batch?: BatchPayments
): Effect.Effect<PaymentOption, ToolError, PayingPolicy> =>
  Effect.gen(function* () {
    const policy = yield* PayingPolicy
    const scheme = asked.scheme ?? schemeOf(resource, batch)
    if (scheme !== "exact" && (scheme !== batchScheme || batch === undefined))
      return yield* rejected("only the scheme exact is supported", {
        scheme: "unsupported"
      })
    const network =
      asked.network === undefined
        ? policy.network
        : Option.match(readNetwork(asked.network), { onNone: () => "", onSome: ({ network }) => network })
    if (network !== policy.network)
      return yield* rejected("this network is not enabled for paying", { networks: [policy.network] })
    const options = readOptions(resource.accepts).filter(
      (option) =>
        option.scheme === scheme &&
        option.network === network &&
        (asked.asset === undefined || option.asset === asked.asset)
    )
    if (options.length === 0)
      return yield* rejected("the resource accepts no payment with this network, scheme and asset")
    const payable = options.filter(({ asset }) => policy.assets.has(asset))
    if (payable.length > 0 && !payable.some(isPaidByName))
      return yield* rejected("the recipient is not the address of an account (G…) or a contract (C…)")
    const option = payable.find(isPaidByName)
    if (option === undefined) return yield* rejected("the operator allows no asset that the resource accepts")
    if (isFields(option.sent["extra"]) && option.sent["extra"]["memoRequired"] === true)
      return yield* rejected("the resource requires a memo, which a sponsored payment cannot carry")
    if (scheme === batchScheme) {
      const issue = readChannelTerms(option, batch!)
      if (typeof issue === "string") return yield* rejected(issue)
    }
    if (option.maxTimeoutSeconds > policy.timeoutSecondsMax)
      return yield* rejected("the resource requires an authorization that is valid for too long")
    const cap = [
      policy.perCall,
      policy.assets.get(option.asset)!,
      ...(asked.maxAtomicAmount === undefined ? [] : [asked.maxAtomicAmount])
    ].reduce((least, one) => (one < least ? one : least))
    if (option.amount > cap) {
      return yield* toolError(
        "BUDGET_EXCEEDED",
        "the resource costs more than the limit of a call, and an exact payment cannot be reduced",
        {
          amount: option.amount.toString(),
          cap: cap.toString()
        }
      )
    }
    return option
  })
