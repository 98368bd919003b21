// The body of /supported: one kind for each scheme and enabled spelling of the network, with the sponsor as signer. A
// network must have a listed asset to have kinds. Kinds depend only on settings, plugins and the caller's key, so they
// never change at run time (S59–S62).
import { Option } from "effect"
import type { NetworkValues } from "../../config/Network.ts"
import type { WireVocabularyValues } from "../../config/WireVocabulary.ts"
import { encodeExtension, encodeNetwork } from "../../Dialect.ts"
import type { ChannelCount } from "../../settlement/channels/ChannelCount.ts"
import type { Signer } from "../../signer/Signer.ts"
import type { SupportedBody } from "../wire/BodyWire.ts"
import type { Extensions } from "../Extension.ts"
import type { Schemes } from "../Scheme.ts"

interface SupportedContext {
  readonly channelCount: ChannelCount["Service"]
  readonly schemes: Schemes["Service"]
  readonly extensions: Extensions["Service"]
  readonly network: NetworkValues
  readonly signer: Signer["Service"]
  readonly words: WireVocabularyValues
  readonly owner: string
}

/** Maximum cost of one payment of a scheme to the sponsor, stroops; a more expensive one is refused. */
const ceilingsOf = (network: NetworkValues, scheme: string) => {
  const { inclusionStroopsMax, resourceStroopsMax, totalStroopsMax } = network.feeCeilings(scheme)
  return {
    maxFeeStroops: totalStroopsMax.toString(),
    maxResourceFeeStroops: resourceStroopsMax.toString(),
    maxInclusionFeeStroops: inclusionStroopsMax.toString()
  }
}

export const encodeSupported = ({
  channelCount,
  extensions,
  network,
  owner,
  schemes,
  signer,
  words
}: SupportedContext): typeof SupportedBody.Type => {
  const kinds =
    network.assets.size === 0
      ? []
      : schemes.all().flatMap((scheme) =>
          Option.match(scheme.supportedExtra(network.id, owner), {
            onNone: () => [],
            onSome: (extra) =>
              words.dialects.map((dialect) => ({
                x402Version: 2 as const,
                scheme: scheme.scheme,
                network: encodeNetwork(network.id, dialect),
                signer: signer.sponsor,
                extra: { areFeesSponsored: true, ...ceilingsOf(network, scheme.scheme), ...extra }
              }))
          })
        )
  const addresses = [signer.sponsor, ...signer.channels.slice(0, channelCount.known())]
  return {
    kinds,
    extensions: [
      ...new Set(words.dialects.flatMap((dialect) => extensions.keys().map((key) => encodeExtension(key, dialect))))
    ].sort(),
    signers: Object.fromEntries(words.dialects.map((dialect) => [`${dialect}:*`, addresses]))
  }
}
