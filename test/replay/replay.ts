// `npm run replay [-- --data DIR] [-- --only TEXT]`: replays ledger streams of stellar-core through the embedded ledger
// and prints two tables by family: how many transactions came out identical, and how close the metered instructions are
// to the real node's. The last line is the total; the exit status is 1 when a supported transaction differs.
// Without streams it says so and succeeds, because they are not part of the project.
import { createHash } from "node:crypto"
import { engineCrypto } from "../support/engineCrypto.ts"
import { WasmRuntime } from "../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import { Report } from "./Report.ts"
import { replayStream } from "./replayStream.ts"
import { findStreams, sharedStreams } from "./streams.ts"

const option = (name: string): string | undefined => {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}

/** A stream that takes longer is named, so that a contract that burns time is noticed. */
const SLOW_SECONDS = 3

const folder = option("--data") ?? sharedStreams
const streams = findStreams(folder)
if (streams === undefined) {
  console.log(`replay skipped: no ledger streams in ${folder}`)
} else {
  const only = option("--only")
  const contracts = new WasmRuntime()
  const report = new Report()
  const networkId = new Uint8Array(createHash("sha256").update("(V) (;,,;) (V)").digest())
  for (const file of streams) {
    if (only !== undefined && !file.name.includes(only) && !file.suite.includes(only)) continue
    const started = performance.now()
    replayStream(file, { crypto: engineCrypto, networkId, contracts }, report)
    const seconds = (performance.now() - started) / 1_000
    if (seconds > SLOW_SECONDS) console.log(`slow: ${file.suite}/${file.name} took ${seconds.toFixed(1)} s`)
  }
  report.printMetering((line) => console.log(line))
  report.print((line) => console.log(line), Number(option("--differences") ?? 40))
  if (report.differences.length > 0) process.exitCode = 1
}
