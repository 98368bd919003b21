// The methods without parameters: this node's version, health and contents.
import { headerBytes } from "../node/Header.ts"
import { toBase64, toHex } from "../node/text.ts"
import { codecs } from "../transaction/Wire.ts"
import { ledgerCloseMeta } from "./ledgerCloseMeta.ts"
import { RpcCode, RpcError } from "./RpcError.ts"
import { rangeFields, type View } from "./View.ts"

/** The version this RPC answers as; its answers follow that release's shapes. */
const RPC_VERSION = "28.0.0"

/** Seconds, and intervals, without a new ledger after which a node reports itself unhealthy; the larger counts. */
const LATENCY_MAX_SECONDS = 30n
const LATENCY_MAX_INTERVALS = 4n

/** A ledger that is closed by hand is never late. */
export const getHealth = (view: View) => {
  const interval = BigInt(view.ledger.options.closeIntervalSeconds)
  const latency = view.now - view.latest.closeTime
  const most =
    LATENCY_MAX_INTERVALS * interval > LATENCY_MAX_SECONDS ? LATENCY_MAX_INTERVALS * interval : LATENCY_MAX_SECONDS
  if (interval > 0n && latency > most) {
    const message = `latency (${latency}s) since last known ledger closed is too high (>${most}s)`
    throw new RpcError(RpcCode.internal, message)
  }
  return { status: "healthy", ...rangeFields(view), ledgerRetentionWindow: view.ledger.options.retention.ledgersMax }
}

export const getNetwork = ({ ledger, network }: View) => ({
  ...(network.friendbotUrl === undefined ? {} : { friendbotUrl: network.friendbotUrl }),
  passphrase: network.passphrase,
  protocolVersion: ledger.options.settings.protocolVersion
})

export const getLatestLedger = ({ ledger, latest }: View) => ({
  id: toHex(latest.hash),
  protocolVersion: ledger.options.settings.protocolVersion,
  sequence: latest.sequence,
  closeTime: latest.closeTime.toString(),
  headerXdr: toBase64(headerBytes(ledger.options.settings, latest)),
  metadataXdr: toBase64(codecs.LedgerCloseMeta.encode(ledgerCloseMeta(ledger.options.settings, latest)))
})

export const getVersionInfo = ({ ledger }: View) => ({
  version: `${RPC_VERSION}-tollkeeper`,
  commitHash: "0".repeat(40),
  buildTimestamp: "1970-01-01T00:00:00",
  captiveCoreVersion: "tollkeeper embedded ledger",
  protocolVersion: ledger.options.settings.protocolVersion
})

const FEE_LEDGERS = 50
const percentiles = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99] as const

const distribution = (fees: ReadonlyArray<bigint>, ledgerCount: number) => {
  const sorted = [...fees].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  const at = (percent: number): string =>
    (sorted[Math.max(0, Math.ceil((percent * sorted.length) / 100) - 1)] ?? 0n).toString()
  const counts = new Map<bigint, number>()
  for (const fee of sorted) counts.set(fee, (counts.get(fee) ?? 0) + 1)
  const mode = [...counts].reduce<readonly [bigint, number]>((best, one) => (one[1] > best[1] ? one : best), [0n, 0])[0]
  return {
    max: at(100),
    min: (sorted[0] ?? 0n).toString(),
    mode: mode.toString(),
    ...Object.fromEntries(percentiles.map((percent) => [`p${percent}`, at(percent)])),
    transactionCount: sorted.length.toString(),
    ledgerCount
  }
}

export const getFeeStats = ({ ledger, latest }: View) => {
  const ledgers = [...ledger.history.from(latest.sequence - FEE_LEDGERS + 1)].filter(
    ({ sequence }) => sequence <= latest.sequence
  )
  const transactions = ledgers.flatMap((record) => record.transactions)
  const fees = (isSoroban: boolean) =>
    transactions
      .filter((transaction) => transaction.isSoroban === isSoroban)
      .map(({ inclusionFeeStroops }) => inclusionFeeStroops)
  return {
    sorobanInclusionFee: distribution(fees(true), ledgers.length),
    inclusionFee: distribution(fees(false), ledgers.length),
    latestLedger: latest.sequence
  }
}
