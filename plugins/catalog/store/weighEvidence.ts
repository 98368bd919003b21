// The weight of a listing's evidence. Payments under exactly the shown words are evidence for them. Each payer counts
// by its largest payment, up to a bound: extra accounts cost nothing, so a count of payers proves little. Until such
// payments risked `fullRisk`, or the first of them is `fullAgeDays` old, the listing is young: it ranks behind older or
// established ones (rules 4). Words that the origin served or the recipient's key declared are established immediately.
// Everything here runs in the caller's transaction.
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import { isPaidIn, type PricedAsset } from "../pricing.ts"

/** Ten-millionths of a dollar. */
export const dollar = 10_000_000n
/** Total that payments must have risked to establish a listing, in ten-millionths of a dollar. */
export const fullRisk = 10n * dollar
/** Maximum that one payer counts with, in ten-millionths of a dollar. */
export const payerRiskMax = dollar
/** Days after its first payment on which a listing is established without more. */
export const fullAgeDays = 30

/** The risk of a payment, in ten-millionths of a dollar; 0 for an asset of unknown worth. */
export const riskOf = (assets: ReadonlyArray<PricedAsset>, contract: string, amount: bigint): bigint => {
  const asset = assets.find((one) => one.contract === contract)
  const isPriced = asset !== undefined && ["USD", "EUR"].some((currency) => isPaidIn(currency, asset.symbol))
  return isPriced ? (amount * dollar) / 10n ** BigInt(asset.decimals) : 0n
}

/** Payers of a claim that count: none of a circle of payments. A condition on `catalog_claim_payers p`. */
export const isOutsideCircles = (sql: SqlClient.SqlClient): Statement.Fragment => sql`not exists (
  select 1 from catalog_payers k where k.resource_id = p.resource_id and k.payer = p.payer and k.circle)`

/**
 * Raises the listings that were paid under the words that they show, and returns them. A quarantined one shows words of
 * a recipient that the origin does not name, and the next declaration would inherit their evidence.
 */
export const weighEvidence = (sql: SqlClient.SqlClient, ids: ReadonlyArray<bigint>, now: Date) => {
  const given = JSON.stringify(ids.map(String))
  // A first probe that is due no longer waits behind mere claims.
  const raised = sql<{ id: bigint }>`with evidence as (
      select r.id, sum(p.risked) as risked from catalog_resources r
        join catalog_claim_payers p on p.resource_id = r.id and p.claim = r.version_hash
      where r.established_at is null and r.state <> 'quarantined' and ${isOutsideCircles(sql)}
        and r.id in (select value::bigint from jsonb_array_elements_text(${given}::jsonb)) group by r.id
    ), raised as (
      update catalog_resources r set standing_at = coalesce(r.standing_at, ${now}),
        established_at = case when e.risked >= ${String(fullRisk)}::numeric then ${now}::timestamptz end
      from evidence e where r.id = e.id and (r.standing_at is null or e.risked >= ${String(fullRisk)}::numeric)
      returning r.id
    ), moved as (update catalog_probes p set stands = true, free = false from raised where p.resource_id = raised.id)
    select id from raised order by id`
  return Effect.map(raised, (rows) => rows.map(({ id }) => id))
}
