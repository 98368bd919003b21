// Payment schemes with the authorization itself as their payload: verify asks the simulated ledger once, prepare
// returns an operation that carries the payment's number. One moves the signed amount, another a smaller amount, and
// both use the same nonces of a payer; the third calls the batch contract, with or without a nonce. They cover
// everything that the kernel may ask of a scheme, with little to decode.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Effect, Option } from "effect"
import { anonymous, type Principal } from "../../kernel/http/Authentication.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { refusal } from "../../kernel/payment/Refusal.ts"
import { cannotPrepare, type Scheme } from "../../kernel/payment/Scheme.ts"
import { networkId, resourceFeeStroops } from "./keys.ts"
import type { Authorization } from "./SimulatedLedger.ts"

export const schemeNames = ["simulated", "simulated-upto"] as const
/** Deposits, claims, sweeps, refunds and withdrawals of the batch contract. */
export const batchScheme = "simulated-batch"

export const asset = StrKey.encodeContract(new Uint8Array(32).fill(9))
/** Verify and prepare refuse if fewer ledgers remain. */
const ledgersLeftMin = 2

const operation = xdr.Operation.schema.encode({
  sourceAccount: null,
  body: {
    type: 24,
    invokeHostFunctionOp: {
      hostFunction: {
        type: 0,
        invokeContract: {
          contractAddress: { type: 1, contractId: new Uint8Array(32).fill(9) },
          functionName: "transfer",
          args: [{ type: 5, u64: 0n }]
        }
      },
      auth: []
    }
  }
} as never)

export const sorobanDataXdr = xdr.SorobanTransactionData.schema.encode({
  ext: { v: 0 },
  resources: { footprint: { readOnly: [], readWrite: [] }, instructions: 1, diskReadBytes: 0, writeBytes: 0 },
  resourceFee: resourceFeeStroops
} as never)

const numberView = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The operation of payment `number`: its last argument before the empty list of authorizations. */
export const operationOf = (number: number): Uint8Array => {
  const bytes = operation.slice()
  numberView(bytes).setBigUint64(bytes.length - 12, BigInt(number))
  return bytes
}

const numberIn = (operationXdr: Uint8Array): number | undefined =>
  operationXdr.length === operation.length
    ? Number(numberView(operationXdr).getBigUint64(operation.length - 12))
    : undefined

/** The key of an authorization, in the format of the product's schemes. */
export const keyOf = (payer: string, nonce: bigint, expiresLedger: number): string =>
  `${payer}:${nonce}:${expiresLedger}`

/** `key:…` is a keyed caller, `ip:…` a keyless one. */
export const principalOf = (source: string): Principal => {
  const keyed = source.startsWith("key")
  return { owner: keyed ? source : anonymous, source, keyed }
}

/** One caller's request to settle an authorization. `variant` is an unsigned field that any relay may change. */
export const paymentOf = (options: {
  readonly authorization: Authorization
  readonly principal: string
  readonly identifier: string | undefined
  readonly variant?: string
}): Payment => {
  const { authorization, identifier, principal, variant = "" } = options
  const terms = {
    scheme: authorization.scheme,
    network: networkId,
    asset,
    amount: Option.some(authorization.amount),
    amountText: String(authorization.amount),
    payTo: authorization.payTo,
    maxTimeoutSeconds: 60,
    extra: {}
  } as const
  return {
    dialect: "ledger",
    principal: principalOf(principal),
    requirements: terms,
    accepted: terms,
    payload: { authorization },
    resourceUrl: Option.none(),
    resource: {},
    extensions: new Map(),
    identifier: Option.fromUndefinedOr(identifier),
    fingerprint: `fingerprint-${authorization.number}${variant}`
  } as unknown as Payment
}

export const authorizationOf = (payment: Payment): Authorization => payment.payload["authorization"] as Authorization

/** Keys of calls that need no authorization on the ledger. */
const noncelessKey = /^(?:claim|refund|sweep):/

/** A transfer of exactly the promised amount. */
const executedTransfer: Scheme["checkExecuted"] = (promise, { transfers }) =>
  Option.isNone(transfers) ||
  transfers.value.some(
    ({ amount, from, to }) => amount === promise.amount && from === promise.payer && to === promise.payTo
  )
    ? { _tag: "Moved", amount: promise.amount }
    : { _tag: "NotMoved", message: "the executed transaction does not show the expected transfer" }

/** A contract call moves its own amount to the promised party; a claim moves nothing. */
const executedBatch: Scheme["checkExecuted"] = (promise, { transfers }) => {
  if (Option.isNone(transfers)) return { _tag: "Moved", amount: promise.amount }
  const [first] = transfers.value
  return first === undefined || first.to === promise.payTo
    ? { _tag: "Moved", amount: first?.amount ?? 0n }
    : { _tag: "NotMoved", message: "the executed transaction pays another" }
}

/** The schemes of a world with these authorizations, by number. */
export const simulatedSchemes = Effect.fnUntraced(function* (authorizations: ReadonlyMap<number, Authorization>) {
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const expired = (payer: string) => refusal("invalid_ledger_auth_expired", "expired", Option.some(payer))

  const verify = Effect.fnUntraced(function* (payment: Payment) {
    const authorization = authorizationOf(payment)
    const { expiresLedger, key, number, payer } = authorization
    const { sequence } = yield* clock.now
    if (expiresLedger < sequence + ledgersLeftMin) return expired(payer)
    const answer = yield* rpc.simulate(String(number))
    if (answer._tag === "Refused")
      return {
        ...refusal("invalid_ledger_enforcing_simulation_failed", answer.code, Option.some(payer)),
        ...(answer.code === "Error(Auth, ExistingValue)" ? { authorizationSpent: true as const } : {})
      }
    return {
      _tag: "Verified" as const,
      payer,
      payTo: payment.requirements.payTo,
      asset,
      amountMax: authorization.amountMax,
      amount: authorization.amount,
      authorizationKey: key,
      authorizationExpiresLedger: expiresLedger,
      resourceFeeStroops,
      state: authorization
    }
  })

  return [...schemeNames, batchScheme].map((scheme): Scheme => ({
    kind: "ledger",
    scheme,
    refusals: [],
    supportedExtra: () => Option.none(),
    authorization: (payment) => {
      const { key, payer } = authorizationOf(payment)
      return Option.some({ key, payer })
    },
    verify,
    unsigned: cannotPrepare,
    prepare: Effect.fnUntraced(function* (_payment, verified) {
      const { expiresLedger, number, payer } = verified.state as Authorization
      const { sequence } = yield* clock.now
      return expiresLedger < sequence + ledgersLeftMin
        ? expired(payer)
        : { operationXdr: operationOf(number), sorobanDataXdr }
    }),
    nonces: {
      nonceOf: (key) => {
        if (noncelessKey.test(key)) return "none"
        const [address = "", nonce = ""] = key.split(":")
        return { address, nonce: BigInt(nonce) }
      },
      useIn: (key, promise, operationXdr) => {
        const number = numberIn(operationXdr)
        const used = number === undefined ? undefined : authorizations.get(number)
        if (used === undefined || noncelessKey.test(key) || !key.startsWith(`${used.payer}:${used.nonce}:`))
          return "none"
        const isSame = used.key === key && used.scheme === scheme && used.amount === promise.amount
        return isSame && used.payTo === promise.payTo ? "same" : "other"
      }
    },
    checkExecuted: (promise, executed) =>
      scheme === batchScheme ? executedBatch(promise, executed) : executedTransfer(promise, executed)
  }))
})
