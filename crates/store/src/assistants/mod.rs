//! Assistants: programs that people let in by OAuth. Behind each is a key that nobody knows; the assistant itself has tokens, stored as hashes.

pub mod calls;
pub mod clients;

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{Caller, KeyId, PersonId, Role, Scope, Secret, TenantId};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::Result;
use crate::keys::{self, CallerRow, hash, new_secret};
use crate::people::called;

/// The life of a code: the program fetches its tokens at once.
pub const CODE_LASTS: Duration = Duration::from_secs(60);
pub const ACCESS_LASTS: Duration = Duration::from_secs(3_600);
/// The life of a refresh token that is not used. Each use gives a new one.
pub const REFRESH_LASTS: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How the tokens begin by which people and secret scanners recognise them.
pub const ACCESS_PREFIX: &str = "tra_";
pub const REFRESH_PREFIX: &str = "trr_";
pub const CODE_PREFIX: &str = "trc_";

/// A program that a person lets in.
#[derive(Clone, Debug)]
pub struct NewAssistant<'a> {
    pub person_id: Option<PersonId>,
    /// The key with which the person had signed in. When it is revoked, so is what it let in.
    pub let_in_by: KeyId,
    pub client_id: &'a str,
    pub client_name: &'a str,
    pub redirect_uri: &'a str,
    pub redirect_host: &'a str,
    pub challenge: &'a str,
    /// The address of ours that its tokens are good for.
    pub resource: &'a str,
    pub scopes: &'a [Scope],
}

/// Lets a program in, and returns the code with which it fetches its tokens.
pub async fn let_in(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    new: &NewAssistant<'_>,
) -> Result<(Uuid, Secret)> {
    let (key_id, _) = keys::create(conn, tenant_id, new.person_id, new.client_name, new.scopes).await?;
    let sql = "update tributary.api_keys set is_assistant = true where tenant_id = $1 and id = $2";
    sqlx::query(sql).bind(tenant_id.0).bind(key_id.0).execute(&mut *conn).await?;
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into tributary.assistants (id, tenant_id, key_id, let_in_by, client_id, client_name, redirect_host, resource, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, now()))",
    )
    .bind(id)
    .bind(tenant_id.0)
    .bind(key_id.0)
    .bind(new.let_in_by.0)
    .bind(new.client_id)
    .bind(new.client_name)
    .bind(new.redirect_host)
    .bind(new.resource)
    .bind(at)
    .execute(&mut *conn)
    .await?;
    let place = Some((new.redirect_uri, new.challenge));
    let code = insert_token(conn, at, tenant_id, id, Kind::Code, place).await?;
    Ok((id, code))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Code,
    Access,
    Refresh,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Access => "access",
            Self::Refresh => "refresh",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Code => CODE_PREFIX,
            Self::Access => ACCESS_PREFIX,
            Self::Refresh => REFRESH_PREFIX,
        }
    }

    fn lasts(self) -> Duration {
        match self {
            Self::Code => CODE_LASTS,
            Self::Access => ACCESS_LASTS,
            Self::Refresh => REFRESH_LASTS,
        }
    }
}

/// A pair of tokens. Only this value has them.
#[derive(Debug)]
pub struct Tokens {
    pub access: Secret,
    pub refresh: Secret,
}

/// Gives an assistant a new pair of tokens.
pub async fn issue(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: Uuid,
) -> Result<Tokens> {
    let access = insert_token(conn, at, tenant_id, id, Kind::Access, None).await?;
    let refresh = insert_token(conn, at, tenant_id, id, Kind::Refresh, None).await?;
    Ok(Tokens { access, refresh })
}

/// `place` is where a code is sent, and its challenge.
async fn insert_token(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: Uuid,
    kind: Kind,
    place: Option<(&str, &str)>,
) -> Result<Secret> {
    let secret = new_secret(kind.prefix());
    sqlx::query(
        "insert into tributary.assistant_tokens (hash, tenant_id, assistant_id, kind, redirect_uri, challenge, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, coalesce($7, now()), coalesce($7, now()) + make_interval(secs => $8))",
    )
    .bind(&hash(&secret)[..])
    .bind(tenant_id.0)
    .bind(id)
    .bind(kind.word())
    .bind(place.map(|(redirect_uri, _)| redirect_uri))
    .bind(place.map(|(_, challenge)| challenge))
    .bind(at)
    .bind(kind.lasts().as_secs_f64())
    .execute(conn)
    .await?;
    Ok(secret)
}

/// A code or a refresh token that a program has shown, and what it stands for.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Shown {
    tenant_id: Uuid,
    pub assistant_id: Uuid,
    key_id: Uuid,
    /// It was used up before: somebody else has it too.
    pub is_used: bool,
    pub is_expired: bool,
    /// Its assistant was revoked, or its tenant is being forgotten.
    pub is_revoked: bool,
    /// Of a code.
    pub redirect_uri: Option<String>,
    pub challenge: Option<String>,
    pub client_id: String,
    pub resource: String,
    pub scopes: Vec<String>,
}

impl Shown {
    pub fn tenant_id(&self) -> TenantId {
        TenantId(self.tenant_id)
    }

    pub fn key_id(&self) -> KeyId {
        KeyId(self.key_id)
    }
}

/// Uses up a code or a refresh token. None: there is none.
pub async fn take(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    secret: &Secret,
    kind: Kind,
) -> Result<Option<Shown>> {
    Ok(sqlx::query_as(include_str!("../sql/assistant_take.sql"))
        .bind(&hash(secret)[..])
        .bind(kind.word())
        .bind(at)
        .fetch_optional(conn)
        .await?)
}

#[derive(sqlx::FromRow)]
struct AssistantRow {
    #[sqlx(flatten)]
    caller: CallerRow,
    persons_role: Option<String>,
    resource: String,
}

/// Returns the caller of an access token and the address that the token is good for. Its rights are those that the person allowed, and has.
pub async fn caller(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    token: &Secret,
) -> Result<Option<(Caller, String)>> {
    let row: Option<AssistantRow> = sqlx::query_as(include_str!("../sql/assistant_caller.sql"))
        .bind(&hash(token)[..])
        .bind(at)
        .fetch_optional(conn)
        .await?;
    Ok(row.map(|row| {
        let mut caller = Caller::from(row.caller);
        // A role of a newer release allows nothing here.
        if let Some(role) = row.persons_role {
            let of_role = role.parse().map(Role::scopes).unwrap_or_default();
            let may = |scope: &Scope| of_role.contains(scope) || of_role.contains(&Scope::Service);
            caller.scopes.retain(may);
        }
        (caller, row.resource)
    }))
}

/// The reason why an assistant was revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokedBy {
    Person,
    /// A code or a refresh token was shown twice.
    Reuse,
    Client,
}

impl RevokedBy {
    fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Reuse => "reuse",
            Self::Client => "client",
        }
    }
}

/// Revokes an assistant with its key, so that all its tokens are refused. Returns the key. None: there is none, or it was revoked before. `of` confines
/// it to those that one person let in.
pub async fn revoke(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: Uuid,
    of: Option<PersonId>,
    by: RevokedBy,
) -> Result<Option<KeyId>> {
    let revoked: Option<Uuid> = sqlx::query_scalar(
        "with revoked as (
             update tributary.assistants a set revoked_at = coalesce($3, now()), revoked_by = $5
             from tributary.api_keys k
             where a.tenant_id = $1 and a.id = $2 and a.revoked_at is null and k.tenant_id = a.tenant_id and k.id = a.key_id
                 and ($4::bigint is null or k.sales_id = $4)
             returning a.key_id)
         update tributary.api_keys k set revoked_at = coalesce(k.revoked_at, now()) from revoked r
         where k.tenant_id = $1 and k.id = r.key_id returning k.id",
    )
    .bind(tenant_id.0)
    .bind(id)
    .bind(at)
    .bind(of.map(|person| person.0))
    .bind(by.word())
    .fetch_optional(conn)
    .await?;
    Ok(revoked.map(KeyId))
}

/// Finds the assistant of a token that a program gives back, by its hash alone.
pub async fn of_token(conn: &mut PgConnection, token: &Secret) -> Result<Option<(TenantId, Uuid, String)>> {
    let found: Option<(Uuid, Uuid, String)> = sqlx::query_as(
        "select a.tenant_id, a.id, a.client_id from tributary.assistant_tokens t
         join tributary.assistants a on a.tenant_id = t.tenant_id and a.id = t.assistant_id
         where t.hash = $1 and t.kind <> 'code'",
    )
    .bind(&hash(token)[..])
    .fetch_optional(conn)
    .await?;
    Ok(found.map(|(tenant_id, id, client_id)| (TenantId(tenant_id), id, client_id)))
}

/// An assistant, as people see it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Assistant {
    pub id: Uuid,
    pub key_id: Uuid,
    pub client_id: String,
    pub client_name: String,
    pub redirect_host: String,
    pub scopes: Vec<String>,
    pub person_id: Option<i64>,
    first_name: Option<String>,
    last_name: Option<String>,
    email: Option<String>,
    pub created_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub revoked_by: Option<String>,
    asked: Json<Vec<Asked>>,
}

/// How often an assistant has called one tool in the last 30 days.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Asked {
    pub tool: String,
    pub n: i64,
}

impl Assistant {
    /// The person who let it in. None: somebody with a key that is no person's.
    pub fn whose(&self) -> Option<String> {
        self.person_id.map(|_| called([&self.first_name, &self.last_name], [&self.email]))
    }

    /// The tools that it called, the most frequent first.
    pub fn asked(&self) -> &[Asked] {
        &self.asked.0
    }
}

/// Lists the tenant's assistants, or those that one person let in.
pub async fn list(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    of: Option<PersonId>,
) -> Result<Vec<Assistant>> {
    Ok(sqlx::query_as(include_str!("../sql/assistants_list.sql"))
        .bind(tenant_id.0)
        .bind(of.map(|person| person.0))
        .bind(at)
        .fetch_all(conn)
        .await?)
}
