// Stored data of a payment as text, before it is sealed: the signed payment with its terms and invocation, and the
// seller's answer if it came before the ledger showed the payment. Amounts are decimal strings.
import { Option, Schema } from "effect"
import type { Reservation } from "../budget/Reservation.ts"
import { withDecimals } from "../budget/ReservationWire.ts"
import { batchScheme } from "../channel/channelTerms.ts"
import type { OpenPayment, OpenVoucher, Output } from "./Invocation.ts"

const Fields = Schema.Record(Schema.String, Schema.Unknown)
const text = Schema.String

const Payment = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    payment: Fields,
    invocation: Schema.Struct({
      key: text,
      ref: text,
      versionHash: text,
      option: Schema.Struct({
        scheme: text,
        network: text,
        asset: text,
        amount: Schema.BigIntFromString,
        payTo: text,
        maxTimeoutSeconds: Schema.Int,
        feesSponsored: Schema.optionalKey(Schema.Unknown),
        extra: text,
        sent: Fields
      }),
      request: Schema.optionalKey(
        Schema.Struct({
          url: text,
          method: text,
          headers: Schema.Record(Schema.String, text),
          body: Schema.optionalKey(text)
        })
      ),
      about: Schema.Struct({
        kind: Schema.Literals(["http", "mcp"]),
        origin: Schema.optionalKey(text),
        grade: Schema.Literals(["proven", "provisional"])
      })
    }),
    /** Earlier payments of this invocation that were signed and released. */
    replaces: Schema.Array(text),
    /** The destination of a deposit. */
    moves: Schema.optionalKey(Schema.Struct({ asset: text, payTo: text, amount: Schema.BigIntFromString }))
  })
)

const Content = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    content: Fields,
    misfits: Schema.Array(text),
    named: Schema.NullOr(text),
    receipt: Schema.optionalKey(text),
    /** Amount charged by a voucher. */
    amount: Schema.optionalKey(Schema.BigIntFromString)
  })
)

const decodePayment = Schema.decodeUnknownOption(Payment)
const decodeContent = Schema.decodeUnknownOption(Content)

export const encodeKeptPayment = (open: OpenPayment | OpenVoucher): string => {
  const { invocation, payment, replaces } = open
  const { about, key, option, ref, request, versionHash } = invocation
  const moves = "moves" in open ? open.moves : undefined
  const wire = { version: 1, payment, invocation: { about, key, option, ref, request, versionHash }, replaces, moves }
  return JSON.stringify(wire, withDecimals)
}

const decoded = (text: string, { id, invocation: key }: Reservation) => {
  const read = Option.getOrUndefined(decodePayment(text))
  if (read === undefined || read.invocation.key !== key) return undefined
  const { invocation, moves, payment, replaces } = read
  const { about, option } = invocation
  return {
    identifier: id,
    payment,
    replaces,
    moves,
    invocation: {
      ...invocation,
      option: { ...option, feesSponsored: option.feesSponsored },
      about: { ...about, origin: about.origin }
    }
  }
}

/** The payment of this reservation; undefined when it does not decode. */
export const decodeKeptPayment = (text: string, reservation: Reservation): OpenPayment | undefined => {
  const { authorization } = reservation
  const read = decoded(text, reservation)
  return read === undefined || authorization === undefined ? undefined : { ...read, authorization }
}

/**
 * The voucher of this reservation, which does not use an authorization on the ledger; undefined when it does not
 * decode. A reservation that was read before it was signed also lacks the authorization, so the terms decide.
 */
export const decodeKeptVoucher = (text: string, reservation: Reservation): OpenVoucher | undefined => {
  const read = reservation.authorization === undefined ? decoded(text, reservation) : undefined
  return read?.invocation.option.scheme === batchScheme && read.moves === undefined ? read : undefined
}

/** A seller's answer, and the members of its receipt that do not match. */
export interface KeptContent {
  readonly content: Output
  readonly misfits: ReadonlyArray<string>
  /** The transaction that the seller named. */
  readonly named: string | null
  /** The facilitator's receipt, if the seller passed it on. */
  readonly receipt?: string
  /** Amount charged by a voucher, in atomic units. */
  readonly amount?: bigint
}

export const encodeKeptContent = (content: KeptContent): string =>
  JSON.stringify({ version: 1, ...content }, withDecimals)

export const decodeKeptContent = (text: string): KeptContent | undefined => Option.getOrUndefined(decodeContent(text))
