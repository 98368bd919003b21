// sendTransaction: hands an envelope to the queue and reports the result. A response never means that the transaction
// happened; only getTransaction shows that.
import { codec } from "../engine/xdr/Xdr.ts"
import { toBase64 } from "../node/text.ts"
import { codecs } from "../transaction/Wire.ts"
import { decodeEnvelope } from "./decodeEnvelope.ts"
import { checkFormat, type Params, text } from "./params.ts"
import { invalidParams } from "./RpcError.ts"
import type { View } from "./View.ts"

export const sendTransaction = ({ ledger, latest, now }: View, params: Params) => {
  checkFormat(params)
  const decoded = decodeEnvelope(text(params, "transaction"))
  if (decoded === undefined) throw invalidParams("invalid_xdr")
  const { status, hash, error, diagnostics = [] } = ledger.send(decoded.envelope, decoded.bytes, now)
  return {
    ...(error === undefined ? {} : { errorResultXdr: toBase64(codecs.TransactionResult.encode(error)) }),
    ...(diagnostics.length === 0
      ? {}
      : { diagnosticEventsXdr: diagnostics.map((event) => toBase64(codec.DiagnosticEvent.encode(event))) }),
    status,
    hash,
    latestLedger: latest.sequence,
    latestLedgerCloseTime: latest.closeTime.toString()
  }
}
