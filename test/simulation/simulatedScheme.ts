// A payment scheme whose payload is the authorization itself: verify asks the ledger once, prepare gives an operation
// that carries the payment's number. Everything the kernel may ask of a scheme, and nothing to decode.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Effect, Option } from "effect"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { refusal } from "../../kernel/payment/Refusal.ts"
import type { Scheme } from "../../kernel/payment/Scheme.ts"
import { networkId } from "./World.ts"

export const asset = StrKey.encodeContract(new Uint8Array(32).fill(9))

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

const sorobanDataXdr = xdr.SorobanTransactionData.schema.encode({
  ext: { v: 0 },
  resources: { footprint: { readOnly: [], readWrite: [] }, instructions: 1, diskReadBytes: 0, writeBytes: 0 },
  resourceFee: 40_000n
} as never)

/** The operation of payment `number`: its last argument, before the empty list of authorizations, is that number. */
const operationOf = (number: number): Uint8Array => {
  const bytes = operation.slice()
  new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(bytes.length - 12, BigInt(number))
  return bytes
}

/** A payment of the simulation; its authorization lives until `expiresLedger`. */
export const paymentOf = (options: {
  readonly number: number
  readonly expiresLedger: number
  readonly principal: string
  readonly identifier: string | undefined
}): Payment => {
  const terms = {
    scheme: "simulated",
    network: networkId,
    asset,
    amount: Option.some(10n),
    amountText: "10",
    payTo: `seller-${options.number % 3}`,
    maxTimeoutSeconds: 60,
    extra: {}
  } as const
  return {
    dialect: "ledger",
    principal: { id: options.principal, keyed: options.principal.startsWith("key") },
    requirements: terms,
    accepted: terms,
    payload: { number: options.number, expiresLedger: options.expiresLedger },
    resourceUrl: Option.none(),
    resource: {},
    extensions: new Map(),
    identifier: Option.fromUndefinedOr(options.identifier),
    fingerprint: `fingerprint-${options.number}`
  } as unknown as Payment
}

export const authorizationOf = (payment: Payment): string => `authorization-${String(payment.payload["number"])}`

export const makeSimulatedScheme = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const scheme: Scheme = {
    scheme: "simulated",
    refusals: [],
    supportedExtra: () => Option.none(),
    authorizationKey: (payment) => Option.some(authorizationOf(payment)),
    verify: Effect.fnUntraced(function* (payment: Payment) {
      const expires = payment.payload["expiresLedger"] as number
      const payer = Option.some("payer")
      const { sequence } = yield* clock.now
      if (expires < sequence + 2) return refusal("invalid_ledger_auth_expired", "expired", payer)
      const answer = yield* rpc.simulate(authorizationOf(payment))
      if (answer._tag === "Refused")
        return {
          ...refusal("invalid_ledger_enforcing_simulation_failed", answer.code, payer),
          authorizationSpent: true as const
        }
      return {
        _tag: "Verified" as const,
        payer: "payer",
        payTo: payment.requirements.payTo,
        asset,
        amountMax: 10n,
        amount: 10n,
        authorizationKey: authorizationOf(payment),
        authorizationExpiresLedger: expires,
        resourceFeeStroops: 40_000n,
        state: payment.payload["number"]
      }
    }),
    prepare: (_payment, verified) =>
      Effect.succeed({ operationXdr: operationOf(verified.state as number), sorobanDataXdr }),
    checkExecuted: (promise) => ({ _tag: "Moved", amount: promise.amount })
  }
  return scheme
})
