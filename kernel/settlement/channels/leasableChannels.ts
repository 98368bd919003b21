// The channels that may be leased. After a rotation the new channels do not exist yet. Until the first of them is
// ready, the replaced channels that are still open are leased, so that settling continues.
import type { SqlClient, Statement } from "effect/sql"
import type { Signer } from "../../signer/Signer.ts"

/** A condition on `kernel_channels`: open, and with one of these keys. */
export const leasableChannels = (
  sql: SqlClient.SqlClient,
  network: string,
  { channels, formerChannels }: Pick<Signer["Service"], "channels" | "formerChannels">
): Statement.Fragment => {
  const isOpen = sql`network = ${network} and state = 'ready' and sequence is not null`
  const isCurrent = sql`address = any(${channels})`
  if (formerChannels.length === 0) return sql`${isOpen} and ${isCurrent}`
  return sql`${isOpen} and (${isCurrent} or (address = any(${formerChannels})
    and not exists (select 1 from kernel_channels where ${isOpen} and ${isCurrent})))`
}
