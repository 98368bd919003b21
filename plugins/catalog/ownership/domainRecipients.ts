// Recipients that a domain names in DNS: TXT records of `_tollkeeper.<host>`, each `v=tk1; payto=<account>`. Others
// are ignored. They are requested only on a request for a look at the origin. They prove recipients, never words,
// prices or URLs.
import { Effect } from "effect"
import { parseAddress } from "../../../kernel/config/addressRange.ts"
import { isLocalName } from "../../../kernel/http/localNames.ts"
import { Outbound } from "../../../kernel/platform/Outbound.ts"
import { recipients } from "./OriginWire.ts"

/** Beyond either limit no record counts: an answer of that kind is not of this form. */
const recordsMax = 16
const recordLengthMax = 255

const recordForm = /^v=tk1; ?payto=(\S+)$/

interface DomainStatement {
  readonly payTos: ReadonlyArray<string>
  /** For the answer to the caller; empty if nothing was asked. */
  readonly detail: string
}

const readRecords = (records: ReadonlyArray<string>): DomainStatement => {
  if (records.length > recordsMax) return { payTos: [], detail: ", dns too many records" }
  if (records.some(({ length }) => length > recordLengthMax)) return { payTos: [], detail: ", dns record too long" }
  const payTos = recipients(records.map((record) => recordForm.exec(record)?.[1]))
  return { payTos, detail: `, dns ${payTos.length} recipients` }
}

/** Never fails: a silent or absent name server leaves nothing stated. IP addresses lack a domain name. */
export const askDomain = Effect.fnUntraced(function* (
  origin: string
): Effect.fn.Return<DomainStatement, never, Outbound> {
  const { texts } = yield* Outbound
  const host = new URL(origin).hostname.replace(/\.$/, "")
  if (parseAddress(host) !== undefined || isLocalName(host)) return { payTos: [], detail: "" }
  return yield* Effect.match(texts(`_tollkeeper.${host}.`), {
    onSuccess: readRecords,
    onFailure: ({ reason }) => ({ payTos: [], detail: `, dns ${reason}` })
  })
})
