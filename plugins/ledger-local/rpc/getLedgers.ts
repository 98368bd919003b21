// getLedgers: closed ledgers in order, with header and full meta.
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import type { LedgerRecord } from "../node/History.ts"
import { toBase64, toHex } from "../node/text.ts"
import { codecs } from "../transaction/Wire.ts"
import * as xdr from "@stellar/stellar-sdk/xdr"
import { headerEntry, ledgerCloseMeta } from "./ledgerCloseMeta.ts"
import { checkFormat, count, page, type Params } from "./params.ts"
import { invalidParams, invalidRequest } from "./RpcError.ts"
import type { View } from "./View.ts"

const LEDGERS_DEFAULT = 50
const LEDGERS_MAX = 200

const item = (settings: NetworkSettings, record: LedgerRecord) => ({
  hash: toHex(record.hash),
  sequence: record.sequence,
  ledgerCloseTime: record.closeTime.toString(),
  headerXdr: toBase64(xdr.LedgerHeaderHistoryEntry.schema.encode(headerEntry(settings, record))),
  metadataXdr: toBase64(codecs.LedgerCloseMeta.encode(ledgerCloseMeta(settings, record)))
})

export const getLedgers = ({ ledger, latest }: View, params: Params) => {
  checkFormat(params)
  const startLedger = count(params, "startLedger")
  const { cursor, limit } = page(params, LEDGERS_DEFAULT, LEDGERS_MAX)
  const oldest = ledger.history.oldest
  if (cursor !== "" && startLedger !== 0) throw invalidParams("startLedger and cursor cannot both be set")
  if (cursor !== "" && !/^[0-9]{1,10}$/.test(cursor)) throw invalidParams(`parsing cursor: ${cursor}`)
  const start = cursor === "" ? startLedger : Number(cursor) + 1
  if (start < oldest.sequence || start > latest.sequence + (cursor === "" ? 0 : 1)) {
    throw invalidRequest(
      `start ledger (${start}) must be between the oldest ledger: ${oldest.sequence} ` +
        `and the latest ledger: ${latest.sequence} for this rpc instance`
    )
  }
  const ledgers: Array<ReturnType<typeof item>> = []
  for (const record of ledger.history.from(start)) {
    if (ledgers.length >= limit || record.sequence > latest.sequence) break
    ledgers.push(item(ledger.options.settings, record))
  }
  return {
    ledgers,
    latestLedger: latest.sequence,
    latestLedgerCloseTime: Number(latest.closeTime),
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTime: Number(oldest.closeTime),
    cursor: (ledgers.at(-1)?.sequence ?? start - 1).toString()
  }
}
