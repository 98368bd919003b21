// Settings of a facilitator process on the command line.

/** `--set` before each. */
export const setting = (...settings: ReadonlyArray<string>): ReadonlyArray<string> =>
  settings.flatMap((one) => ["--set", one])

export interface OverLedger {
  readonly rpcUrl: string
  readonly ledgerUrl: string
  readonly channels: number
}

/** The settings of the test network over a ledger process; `rpcUrl` may be a proxy's. */
export const overLedger = ({ channels, ledgerUrl, rpcUrl }: OverLedger): ReadonlyArray<string> => [
  `networks.ledger:testnet.rpc_urls=["${rpcUrl}"]`,
  `networks.ledger:testnet.friendbot_url=${ledgerUrl}/friendbot`,
  `networks.ledger:testnet.channel_count=${channels}`
]
