// `npm run replay [-- --data DIR] [-- --only TEXT] [-- --protocol N]`: replays ledger streams of stellar-core through
// the embedded ledger and prints three tables: the number of identical transactions by family, the accuracy of metered
// instructions compared with the real node's by family, and the same by host function, over the calls that use it. The
// last line is the total; the exit status is 1 if a supported transaction differs. Without streams it prints a message
// and succeeds, because they are not part of the project.
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { engineCrypto } from "../support/engineCrypto.ts"
import { WasmRuntime } from "../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import { Report } from "./Report.ts"
import { replayStream } from "./replayStream.ts"
import { findStreams, lastProtocol, sharedStreams } from "./streams.ts"

const option = (name: string): string | undefined => {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}

/** A stream that takes longer is reported, so that a slow contract is noticed. */
const SLOW_SECONDS = 3

/**
 * Long names of host functions by their short ones, if the file is next to the streams; otherwise the short ones are
 * used.
 */
const namesFile = new URL("../../../shared/data/soroban-host-functions.json", import.meta.url)
const names: Readonly<Record<string, string>> = existsSync(namesFile) ? JSON.parse(readFileSync(namesFile, "utf8")) : {}
const folder = option("--data") ?? sharedStreams
const streams = findStreams(folder)
if (streams === undefined) {
  console.log(`replay skipped: no ledger streams in ${folder}`)
} else {
  const only = option("--only")
  const protocol = option("--protocol")
  const hostCalls = new Set<string>()
  const contracts = new WasmRuntime(undefined, (hostFunction) => hostCalls.add(hostFunction))
  const report = new Report()
  const networkId = new Uint8Array(createHash("sha256").update("(V) (;,,;) (V)").digest())
  for (const file of streams) {
    if (only !== undefined && !file.name.includes(only) && !file.suite.includes(only)) continue
    if (protocol !== undefined && lastProtocol(file) !== Number(protocol)) continue
    const started = performance.now()
    replayStream(file, { crypto: engineCrypto, networkId, contracts, hostCalls }, report)
    const seconds = (performance.now() - started) / 1_000
    if (seconds > SLOW_SECONDS) console.log(`slow: ${file.suite}/${file.name} took ${seconds.toFixed(1)} s`)
  }
  if (report.total.streams === 0) console.log(`no stream ends at protocol ${protocol ?? "?"} in ${folder}`)
  report.printMetering(
    (line) => console.log(line),
    (id) => `${id} ${names[id] ?? ""}`
  )
  report.print((line) => console.log(line), Number(option("--differences") ?? 40))
  if (report.differences.length > 0) process.exitCode = 1
}
