// The JSON answers of a Stellar RPC (protocol methods of stellar-rpc 28), only with the fields that we read. Unknown
// fields are ignored; numbers that the RPC writes as strings are strings here too.
import { Schema } from "effect"

const Count = Schema.Natural
const OptionalText = Schema.optionalKey(Schema.NullOr(Schema.String))

export const JsonRpcAnswer = Schema.Struct({
  id: Schema.optionalKey(Schema.Unknown),
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.NullOr(Schema.Struct({ code: Schema.Number, message: Schema.String })))
})

export const GetNetwork = Schema.Struct({ passphrase: Schema.String, protocolVersion: Count })

export const GetLatestLedger = Schema.Struct({
  sequence: Count,
  protocolVersion: Count,
  closeTime: Schema.optionalKey(Schema.Union([Schema.String, Schema.Number])),
  headerXdr: OptionalText
})

export const GetLedgerEntries = Schema.Struct({
  latestLedger: Count,
  entries: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        key: Schema.String,
        xdr: Schema.String,
        lastModifiedLedgerSeq: Schema.optionalKey(Count),
        liveUntilLedgerSeq: Schema.optionalKey(Schema.NullOr(Count))
      })
    )
  )
})

export const SimulateTransaction = Schema.Struct({
  latestLedger: Count,
  error: OptionalText,
  transactionData: OptionalText,
  minResourceFee: OptionalText,
  events: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))),
  results: Schema.optionalKey(
    Schema.NullOr(
      Schema.Array(
        Schema.Struct({
          auth: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))),
          xdr: OptionalText
        })
      )
    )
  ),
  restorePreamble: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ transactionData: OptionalText, minResourceFee: OptionalText }))
  )
})

export const SendTransaction = Schema.Struct({
  status: Schema.Literals(["PENDING", "DUPLICATE", "TRY_AGAIN_LATER", "ERROR"]),
  hash: Schema.String,
  errorResultXdr: OptionalText
})

export const GetTransaction = Schema.Struct({
  status: Schema.Literals(["SUCCESS", "FAILED", "NOT_FOUND"]),
  latestLedger: Count,
  oldestLedger: Count,
  ledger: Schema.optionalKey(Count),
  createdAt: Schema.optionalKey(Schema.Union([Schema.String, Schema.Number])),
  envelopeXdr: OptionalText,
  resultXdr: OptionalText,
  resultMetaXdr: OptionalText
})

export const GetTransactions = Schema.Struct({
  latestLedger: Count,
  oldestLedger: Count,
  cursor: Schema.optionalKey(Schema.String),
  transactions: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        status: Schema.String,
        txHash: Schema.String,
        ledger: Count,
        createdAt: Schema.optionalKey(Schema.Union([Schema.String, Schema.Number])),
        envelopeXdr: OptionalText,
        resultXdr: OptionalText,
        resultMetaXdr: OptionalText
      })
    )
  )
})

export const GetLedgers = Schema.Struct({
  ledgers: Schema.NullOr(Schema.Array(Schema.Struct({ hash: Schema.String, sequence: Count, headerXdr: OptionalText })))
})

export const GetEvents = Schema.Struct({
  latestLedger: Count,
  cursor: Schema.optionalKey(Schema.String),
  events: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        ledger: Count,
        contractId: Schema.String,
        topic: Schema.Array(Schema.String),
        value: Schema.String
      })
    )
  )
})

const Fees = Schema.Struct({ p50: Schema.String, p90: Schema.String, p99: Schema.String })
export const GetFeeStats = Schema.Struct({ sorobanInclusionFee: Fees })
