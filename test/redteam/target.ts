// The target of a red-team run: any URL with the x402 protocol. An attack reads the facilitator's networks and signing
// accounts from its own `/supported`.

export interface Target {
  /** Base URL, without a slash at its end. */
  readonly url: string
  /** Bearer key, for a facilitator that asks for one. */
  readonly key?: string | undefined
}

export const bearerOf = ({ key }: Target): Record<string, string> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` }

const supportedOf = async (target: Target): Promise<any> => {
  const response = await fetch(`${target.url}/supported`, {
    headers: bearerOf(target),
    signal: AbortSignal.timeout(10_000)
  })
  if (!response.ok) throw new Error(`${target.url}/supported answered ${response.status}`)
  return response.json()
}

/** The spellings of networks that offer `exact`; at least one. */
export const networksOf = async (target: Target): Promise<ReadonlyArray<string>> => {
  const { kinds } = await supportedOf(target)
  const networks: Array<string> = kinds.filter((kind: any) => kind.scheme === "exact").map((kind: any) => kind.network)
  if (networks.length === 0) throw new Error(`${target.url} offers no exact payments`)
  return [...new Set(networks)]
}

/**
 * Every account that the facilitator signs with, without repetition: the sponsor first if the kinds contain it, then
 * the channels.
 */
export const signersOf = async (target: Target): Promise<ReadonlyArray<string>> => {
  const { kinds, signers } = await supportedOf(target)
  const all = [
    ...kinds.map((kind: any) => kind.signer).filter((signer: unknown) => typeof signer === "string"),
    ...Object.values(signers ?? {}).flat()
  ] as ReadonlyArray<string>
  return [...new Set(all)]
}
