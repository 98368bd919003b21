// The refundable part of a contract transaction's resource fee: rent and events are paid out of it as they come up, and
// the rest is refunded to the payer. A transaction that fails consumed nothing of it.
export class RefundableFee {
  readonly maximumStroops: bigint
  rentStroops = 0n
  consumedStroops = 0n

  constructor(maximumStroops: bigint) {
    this.maximumStroops = maximumStroops
  }

  /** Pays rent and events; false when the sender's offer does not cover them. */
  consume(rentStroops: bigint, eventsStroops: bigint): boolean {
    this.rentStroops += rentStroops
    if (this.maximumStroops < this.rentStroops) return false
    this.consumedStroops = this.rentStroops + eventsStroops
    return this.consumedStroops <= this.maximumStroops
  }

  reset(): void {
    this.rentStroops = 0n
    this.consumedStroops = 0n
  }

  get refundStroops(): bigint {
    return this.maximumStroops - this.consumedStroops
  }
}
