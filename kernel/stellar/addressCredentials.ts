// The credentials of an authorization that we write. Since protocol 27 (CAP-71) the signed bytes include the address
// too (version 2), so that a signature is valid for one account even if another shares its key. Earlier protocols have
// only the first version; both are read everywhere.
import { xdr } from "@stellar/stellar-sdk/base"

/** The first protocol that accepts credentials of version 2. */
const ADDRESS_V2_SINCE = 27

/** The credentials in the newest version that a network with this protocol accepts. */
export const addressCredentials = (
  credentials: xdr.SorobanAddressCredentials,
  protocolVersion: number
): xdr.SorobanCredentials =>
  protocolVersion >= ADDRESS_V2_SINCE
    ? xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
    : xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
