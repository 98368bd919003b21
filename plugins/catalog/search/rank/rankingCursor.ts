// A search cursor holds the ranking itself, as ids in their order, and how many of them were shown. So the pages of one
// search are cut from one list, on any replica and during any writes to the catalog: nothing repeats and nothing is
// skipped (S125). An id costs two or three bytes; the list is as long as the window that was ranked. Pure.
import { Option, Result } from "effect"
import { Base64Url } from "effect/encoding"

export interface RankingPosition {
  /** Hits of the list that have been shown. */
  readonly shown: number
  /** The list, from the first hit on. */
  readonly ids: ReadonlyArray<bigint>
  /** There may be hits beyond the list. */
  readonly more: boolean
  /** Some hit counts as an answer; otherwise the list only has the nearest. */
  readonly isAnswered: boolean
  /** A branch of search was missing, or the reranker, when the list was made. */
  readonly isPartial: boolean
}

const [moreFlag, nearestFlag, partialFlag] = [1, 2, 4]

export const encodePosition = ({ ids, isAnswered, isPartial, more, shown }: RankingPosition): string => {
  const bytes: Array<number> = []
  for (const id of ids) {
    // No table has ids beyond the safe integers.
    let rest = Number(id)
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
    bytes.push(rest)
  }
  const flags = (more ? moreFlag : 0) | (isAnswered ? 0 : nearestFlag) | (isPartial ? partialFlag : 0)
  return `${shown}.${flags}.${Base64Url.encode(Uint8Array.from(bytes))}`
}

/** None unless `encodePosition` made the text. */
export const decodePosition = (text: string): Option.Option<RankingPosition> => {
  const [, shown, flags, encoded] = /^(\d{1,6})\.([0-7])\.([A-Za-z0-9_-]*)$/.exec(text) ?? []
  const bytes = encoded === undefined ? undefined : Base64Url.decode(encoded)
  if (shown === undefined || bytes === undefined || Result.isFailure(bytes)) return Option.none()
  const ids: Array<bigint> = []
  let id = 0n
  let shift = 0n
  for (const byte of bytes.success) {
    id |= BigInt(byte & 127) << shift
    shift += 7n
    if (byte >= 128) continue
    ids.push(id)
    id = 0n
    shift = 0n
  }
  return Option.some({
    shown: Number(shown),
    ids,
    more: (Number(flags) & moreFlag) !== 0,
    isAnswered: (Number(flags) & nearestFlag) === 0,
    isPartial: (Number(flags) & partialFlag) !== 0
  })
}
