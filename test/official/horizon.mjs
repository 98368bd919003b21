// Loaded before an official program (`--import`). The official client asks a hard-coded public Horizon host for the
// time between ledgers; this sends that one connection to the local ledger's HTTPS listener at `LOCAL_HORIZON_PORT`
// instead, which answers the same path. Nothing else is touched, and no package is changed.
import tls from "node:tls"

const hosts = new Set(["horizon-testnet.stellar.org", "horizon.stellar.org"])
const port = Number(process.env.LOCAL_HORIZON_PORT)
const connect = tls.connect

if (port > 0) {
  tls.connect = (...args) => {
    const [options, ...rest] = args
    if (typeof options !== "object" || options === null || !hosts.has(options.host)) return connect(...args)
    return connect({ ...options, host: "127.0.0.1", port, servername: "localhost" }, ...rest)
  }
}
