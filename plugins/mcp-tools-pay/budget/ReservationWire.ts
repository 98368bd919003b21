// Reservations as text for the file store. Amounts and nonces are decimal strings.
import { Effect, Schema } from "effect"
import { type Reservation, reservationStates } from "./Reservation.ts"

const Stored = Schema.Struct({
  id: Schema.String,
  day: Schema.String,
  agent: Schema.String,
  session: Schema.String,
  invocation: Schema.String,
  network: Schema.String,
  asset: Schema.String,
  payTo: Schema.String,
  // Absent in files of earlier versions.
  origin: Schema.optionalKey(Schema.NullOr(Schema.String)),
  grade: Schema.optionalKey(Schema.NullOr(Schema.Literals(["proven", "provisional"]))),
  amount: Schema.BigIntFromString,
  state: Schema.Literals(reservationStates),
  createdAtMillis: Schema.Int,
  authorization: Schema.NullOr(
    Schema.Struct({ payer: Schema.String, nonce: Schema.BigIntFromString, expirationLedger: Schema.Int })
  ),
  transaction: Schema.NullOr(Schema.String),
  // Absent in files of earlier versions.
  receipt: Schema.optionalKey(Schema.String),
  ledgerSeconds: Schema.optionalKey(Schema.Int),
  acknowledgedAtMillis: Schema.optionalKey(Schema.Int)
})

const Table = Schema.fromJsonString(Schema.Array(Stored))

export const decodeTable = (text: string): Effect.Effect<ReadonlyArray<Reservation>, Schema.SchemaError> =>
  Effect.map(Schema.decodeUnknownEffect(Table)(text), (table) =>
    table.map((one) => ({
      ...one,
      origin: one.origin ?? undefined,
      grade: one.grade ?? undefined,
      authorization: one.authorization ?? undefined,
      transaction: one.transaction ?? undefined
    }))
  )

/** A replacer for `JSON.stringify`: writes amounts as decimal strings. */
export const withDecimals = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value)

export const encodeTable = (table: ReadonlyArray<Reservation>): string =>
  JSON.stringify(
    table.map((one) => ({ ...one, authorization: one.authorization ?? null, transaction: one.transaction ?? null })),
    withDecimals
  )
