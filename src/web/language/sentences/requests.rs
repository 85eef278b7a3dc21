//! The sentences of problems with what was sent: the request, its caller, the change that it asks
//! for, and the content of a document.

/// Gives these sentences to a macro, behind the name of the one that follows it.
macro_rules! with_requests {
    ($then:ident $last:ident) => { $then! {
    $last;
    // For the author of the client program.
    MalformedJson
        "ระบบไม่สามารถอ่านคำขอนี้ได้ กรุณาติดต่อผู้ดูแลระบบ"
        "系统无法读取该请求，请联系系统管理员" "系統無法讀取此請求，請聯絡系統管理員"
        "The request could not be read. Please contact the administrator.",
    InvalidHost
        "คำขอไม่ได้ระบุชื่อระบบปลายทางให้ชัดเจน กรุณาติดต่อผู้ดูแลระบบ"
        "请求未明确指明目标系统，请联系系统管理员" "請求未明確指明目標系統，請聯絡系統管理員"
        "The request does not say clearly whom it asks. Please contact the administrator.",
    HostNotAllowed
        "ไม่สามารถเรียกใช้ระบบด้วยชื่อนี้ได้ กรุณาติดต่อผู้ดูแลระบบ"
        "不能以此名称访问本系统，请联系系统管理员" "不能以此名稱存取本系統，請聯絡系統管理員"
        "The system cannot be reached under this name. Please contact the administrator.",
    CrossSite
        "หน้าเว็บของเว็บไซต์อื่นไม่สามารถเปลี่ยนแปลงข้อมูลในระบบนี้ได้"
        "其他网站的页面不能更改本系统的数据" "其他網站的頁面不能變更本系統的資料"
        "A page of another site cannot change anything here.",
    RouteNotFound
        "ไม่พบหน้าที่เรียก กรุณาติดต่อผู้ดูแลระบบ"
        "未找到所请求的页面，请联系系统管理员" "找不到所請求的頁面，請聯絡系統管理員"
        "There is nothing at this address. Please contact the administrator.",
    MethodNotAllowed
        "ไม่สามารถดำเนินการแบบนี้ที่หน้านี้ได้ กรุณาติดต่อผู้ดูแลระบบ"
        "此页面不支持该操作，请联系系统管理员" "此頁面不支援該操作，請聯絡系統管理員"
        "This cannot be done at this address. Please contact the administrator.",
    UnsupportedMediaType
        "รูปแบบของข้อมูลที่ส่งไม่ถูกต้อง กรุณาติดต่อผู้ดูแลระบบ"
        "提交的数据格式不受支持，请联系系统管理员" "提交的資料格式不受支援，請聯絡系統管理員"
        "What was sent has the wrong format. Please contact the administrator.",
    UnknownTransferCoding
        "ระบบไม่รองรับวิธีส่งข้อมูลนี้ กรุณาติดต่อผู้ดูแลระบบ"
        "系统不支持此数据传输方式，请联系系统管理员" "系統不支援此資料傳輸方式，請聯絡系統管理員"
        "What was sent came in a way that is not understood. Please contact the administrator.",
    BodyTimeout
        "การส่งข้อมูลใช้เวลานานเกินไป กรุณาลองใหม่"
        "数据传输超时，请重试" "資料傳輸逾時，請重試"
        "Sending the data took too long. Please try again.",
    BodyTooLarge
        "ข้อมูลที่ส่งมีขนาดใหญ่เกินไป กรุณาแบ่งส่งทีละส่วน"
        "提交的数据过大，请分批提交" "提交的資料過大，請分批提交"
        "That is too much at once. Please send less.",
    IdempotencyKeyReused
        "รหัสอ้างอิงของคำขอนี้ถูกใช้กับคำขออื่นแล้ว กรุณาติดต่อผู้ดูแลระบบ"
        "该请求的标识已用于另一请求，请联系系统管理员"
        "此請求的識別碼已用於另一請求，請聯絡系統管理員"
        "The key of this request belongs to another one. Please contact the administrator.",

    // Callers and their pace.
    Unauthenticated
        "กรุณาเข้าสู่ระบบใหม่อีกครั้ง"
        "请重新登录" "請重新登入"
        "Please sign in again.",
    NotPermitted
        "คุณไม่มีสิทธิ์ดำเนินการนี้ กรุณาติดต่อผู้ดูแลระบบ"
        "您没有执行此操作的权限，请联系系统管理员" "您沒有執行此操作的權限，請聯絡系統管理員"
        "You may not do this. Please contact the administrator.",
    TooManyRequests
        "ขอมากเกินไปในเวลาอันสั้น กรุณารอสักครู่แล้วลองใหม่"
        "短时间内请求过多，请稍候再试" "短時間內請求過多，請稍候再試"
        "That is too much in a short time. Please wait a moment and try again.",
    TokenNotFound
        "ไม่พบรหัสเข้าใช้งานนี้"
        "未找到该访问令牌" "找不到此存取權杖"
        "There is no such token.",
    TokenNameTaken
        "ชื่อของรหัสเข้าใช้งานนี้ถูกใช้แล้ว กรุณาใช้ชื่ออื่น"
        "该访问令牌名称已被使用，请换一个名称" "此存取權杖名稱已被使用，請換一個名稱"
        "Another token has this name. Please choose another one.",
    TokenRevoked
        "รหัสเข้าใช้งานนี้ถูกยกเลิกแล้ว กรุณาสร้างรหัสใหม่"
        "该访问令牌已被撤销，请新建一个" "此存取權杖已被撤銷，請新建一個"
        "This token is revoked. Please create a new one.",

    // Changes that two people answer for.
    OwnChange
        "ผู้ขอเปลี่ยนแปลงไม่สามารถอนุมัติคำขอของตนเองได้ กรุณาให้ผู้อื่นอนุมัติ"
        "申请人不能批准自己的更改，请由他人批准" "申請人不能核准自己的變更，請由他人核准"
        "You asked for this change yourself. Please have somebody else approve it.",
    ChangeNotFound
        "ไม่พบคำขอเปลี่ยนแปลงนี้"
        "未找到该更改申请" "找不到此變更申請"
        "There is no such request for a change.",
    ChangeAnswered
        "คำขอเปลี่ยนแปลงนี้ได้รับคำตอบแล้วหรือหมดเวลาแล้ว กรุณาขอใหม่หากยังต้องการ"
        "该更改申请已处理或已过期，如仍需要请重新申请"
        "此變更申請已處理或已逾期，如仍需要請重新申請"
        "This request for a change is answered, or its time is over. Please ask anew.",
    BelowLeastAllowed
        "เลขหรือวันที่ที่ขอต่ำกว่าที่ออกไปแล้ว กรุณาเลือกค่าที่สูงกว่า"
        "所要求的值或日期低于已签发的，请选择更大的值"
        "所要求的值或日期低於已核發的，請選擇較大的值"
        "What you ask for lies below what is issued already. Please choose a later one.",
    VersionConflict
        "เลขที่เอกสารถูกเปลี่ยน กรุณาลองใหม่"
        "单据编号已变更，请重试" "單據編號已變更，請重試"
        "The document number has changed. Please try again.",
    PreconditionRequired
        "กรุณาเปิดดูข้อมูลล่าสุดก่อนแก้ไข"
        "请先读取最新内容，再进行更改" "請先讀取最新內容，再進行變更"
        "Please look at the latest version before you change it.",

    // What is searched for.
    TableNotFound
        "ไม่พบตารางข้อมูลอ้างอิงนี้"
        "未找到该参考数据表" "找不到此參考資料表"
        "There is no such table.",
    ConfigNotFound
        "ไม่พบการตั้งค่าเลขที่เอกสารนี้"
        "未找到该单据编号设置" "找不到此單據編號設定"
        "There is no such numbering configuration.",
    NumberNotFound
        "ไม่พบเลขที่เอกสารนี้"
        "未找到该单据编号" "找不到此單據編號"
        "There is no such document number.",
    DocumentNotNumbered
        "เอกสารนี้ยังไม่มีเลขที่ กรุณาลองใหม่ภายหลัง"
        "该单据尚无编号，请稍后重试" "此單據尚無編號，請稍後再試"
        "The document has no number yet. Please try again later.",

    // The content of a document.
    InvalidField
        "ข้อมูลบางช่องไม่ถูกต้องหรือขาดหาย กรุณาตรวจสอบและแก้ไข"
        "有内容缺失或填写有误，请检查并修改" "有內容缺漏或填寫有誤，請檢查並修改"
        "Something is missing or wrong. Please check and correct it.",
    UnknownType
        "ไม่รู้จักประเภทเอกสารนี้ กรุณาตรวจสอบ"
        "未知的单据类型，请检查" "未知的單據類型，請檢查"
        "This type of document is not known. Please check it.",
    TypeNotConfigured
        "เอกสารประเภทนี้ยังไม่ได้ตั้งค่าเลขที่ กรุณาติดต่อผู้ดูแลระบบ"
        "该单据类型尚未设置编号，请联系系统管理员" "此單據類型尚未設定編號，請聯絡系統管理員"
        "Documents of this type are not numbered yet. Please contact the administrator.",
    UnknownVariable
        "มีข้อมูลที่เอกสารประเภทนี้ไม่ใช้ กรุณานำออก"
        "包含该类单据不使用的内容，请删除" "包含此類單據不使用的內容，請刪除"
        "Documents of this type have no such detail. Please leave it out.",
    MissingVariable
        "ข้อมูลที่จำเป็นยังไม่ครบ กรุณากรอกให้ครบ"
        "缺少必填内容，请补充" "缺少必填內容，請補充"
        "A detail that is needed is missing. Please fill it in.",
    ValueTooLong
        "ข้อมูลยาวเกินไป กรุณาทำให้สั้นลง"
        "内容过长，请缩短" "內容過長，請縮短"
        "A detail is too long. Please make it shorter.",
    ValueTooShort
        "ข้อมูลสั้นเกินไป กรุณากรอกให้ครบทุกตัวอักษร"
        "内容过短，请补足字符" "內容過短，請補足字元"
        "A detail is too short. Please write all of it.",
    UnknownValue
        "ค่านี้ไม่อยู่ในรายการที่ใช้ได้ กรุณาเลือกจากรายการ"
        "该值不在可用列表中，请从列表中选择" "此值不在可用清單中，請從清單中選取"
        "This is none of the values to choose from. Please choose one of them.",
    WrongAlphabet
        "มีตัวอักษรที่ใช้ไม่ได้ กรุณาแก้ไข"
        "含有不允许的字符，请修改" "含有不允許的字元，請修改"
        "A detail has a character that is not allowed. Please correct it.",
    InvalidDate
        "วันที่ไม่ถูกต้อง กรุณาตรวจสอบวันที่"
        "日期有误，请检查日期" "日期有誤，請檢查日期"
        "The date is wrong. Please check it.",
    TimeRequired
        "ต้องระบุเวลาด้วย กรุณาเพิ่มเวลา"
        "还需要时间，请补充时间" "還需要時間，請補充時間"
        "The time of day is needed, too. Please add it.",
    PeriodClosed
        "งวดของวันที่นี้ปิดแล้ว กรุณาใช้วันที่ในงวดที่ยังเปิดอยู่"
        "该日期所在期间已关闭，请使用未关闭期间的日期"
        "此日期所在期間已關閉，請使用未關閉期間的日期"
        "The period of this date is closed. Please use a date of an open one.",
    DateBeforeLast
        "วันที่อยู่ก่อนวันที่ของเลขที่ล่าสุด กรุณาใช้วันที่เดียวกันหรือหลังจากนั้น"
        "日期早于上一个编号的日期，请使用不早于它的日期"
        "日期早於上一個編號的日期，請使用不早於該日的日期"
        "The date lies before that of the last number. Please use that date or a later one.",
    UnknownReference
        "ไม่มีรหัสนี้ในข้อมูลอ้างอิง กรุณาตรวจสอบรหัส"
        "参考数据中没有此代码，请检查代码" "參考資料中沒有此代碼，請檢查代碼"
        "This code is not known. Please check it.",
    InactiveReference
        "รหัสนี้ถูกปิดใช้งานแล้ว กรุณาใช้รหัสอื่น"
        "此代码已停用，请使用其他代码" "此代碼已停用，請使用其他代碼"
        "This code is no longer in use. Please use another one.",
    NotAMember
        "หน่วยงานผู้ส่งไม่ได้อยู่ในโครงการนี้ กรุณาตรวจสอบ"
        "发文单位不属于该项目，请检查" "發文單位不屬於此專案，請檢查"
        "The sending organization does not belong to the project. Please check both.",
    ProjectAmbiguous
        "หน่วยงานผู้ส่งอยู่ในหลายโครงการ กรุณาเลือกโครงการ"
        "发文单位属于多个项目，请选择项目" "發文單位屬於多個專案，請選擇專案"
        "The sending organization belongs to several projects. Please choose one.",
    } };
}
pub(super) use with_requests;
