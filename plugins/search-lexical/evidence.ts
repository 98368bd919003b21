// The weight of a term: its rarity among listings, and whether it is evidence of a topic. A word that one origin in
// nine uses names the medium and not the topic. It is left out if the query has discriminative words; a query of only
// such words is answered by them. Its frequency is counted over the catalog's origins, so that a thousand listings of
// one seller do not make its words common. It is smoothed by some hundred imaginary origins without it, because sixty
// listings cannot separate a common word from the word of a trade that half of them belong to. Nor can they show that
// "endpoint", which hardly any listing writes and every agent asks for, is not evidence: words that interfaces of any
// kind use (`commonWords.ts`) are not evidence in any catalog. Pure.
import { commonShareOf } from "./commonWords.ts"
import type { IndexState } from "./LexicalStore.ts"

/** A word of this share of any English text keeps half of its weight. */
const ordinaryFrequency = 0.001

/**
 * How much of its weight a word keeps by its share of any text. A few listings cannot show that "today" and "go" are
 * words of a question and "whale" is its topic: smooth inverse frequency (Arora and others) can.
 */
export const ordinaryShare = (frequency: number): number => ordinaryFrequency / (ordinaryFrequency + frequency)

/** Imaginary origins without the word, added to the catalog's. */
const priorOrigins = 200
/** Up to this share of origins a word is full evidence; above it less, and at the second share next to none. */
const fullShare = 0.05
const noShare = 0.115
/** Remaining weight of a word that every origin uses. */
const leastEvidence = 0.03

interface Frequency {
  readonly documents: number
  /** None of an index that has not counted them yet. */
  readonly origins: number
}

type Counts = Pick<IndexState, "documents" | "origins"> & Partial<Pick<IndexState, "proven">>

/** Robertson and Sparck Jones' inverse document frequency, never negative. */
const rarity = (held: number, all: number): number => Math.log(1 + (Math.max(0, all - held) + 0.5) / (held + 0.5))

/** How much of its rarity a word is worth that such a share uses. */
const discriminativeShare = (share: number): number =>
  share <= fullShare ? 1 : Math.max(leastEvidence, Math.log(noShare / share) / Math.log(noShare / fullShare))

/** The share of origins that use a word, as far as is known. */
const shareOf = ({ documents, origins }: Frequency, state: Counts, common: number): number => {
  const [held, all] =
    state.origins > 0 || state.proven === true ? [origins, state.origins] : [documents, state.documents]
  return Math.max(common, held / (all + priorOrigins))
}

/** Whether a word names the medium; `common` as below. */
export const isMedium = (frequency: Frequency, state: Counts, common = 0): boolean =>
  discriminativeShare(shareOf(frequency, state, common)) === leastEvidence

/**
 * Rarity by listings. If any listing has evidence, rarity by established origins instead, smoothed as above: free and
 * dust listings do not make a word frequent. An unknown word is as rare as the rarest.
 */
const rarityOf = ({ documents, origins }: Frequency, state: Counts): number =>
  state.proven === true
    ? rarity(Math.max(1, origins), state.origins + priorOrigins)
    : rarity(Math.max(documents, Math.min(1, state.documents)), state.documents)

/** `common`: the share of interfaces of any kind that use the word. */
export const evidenceOf = (frequency: Frequency, state: Counts, common = 0): number =>
  rarityOf(frequency, state) * discriminativeShare(shareOf(frequency, state, common))

/** The weight of a word that a single listing holds. */
export const fullEvidence = (state: Counts): number =>
  evidenceOf({ documents: Math.min(1, state.documents), origins: 0 }, state)

/** A word's share of its weight before any catalog was counted, only by the prior; 0 for the medium. */
export const priorEvidence = (word: string): number => {
  const discriminative = discriminativeShare(commonShareOf(word))
  return discriminative === leastEvidence ? 0 : discriminative
}
